// Batches made to order for tests of the feed: sin(index) in every place, prepared in a given time.
#pragma once

#include <chrono>
#include <cmath>
#include <functional>
#include <thread>

#include "data/feed/batch_maker.h"

namespace tandem::tests {

struct MadeBatches : BatchMaker {
  std::chrono::milliseconds preparing{0}, loading{0};
  int64_t rows = 8, width = 4;
  int tasks = 0;
  std::function<void(int64_t index, int task)> on_task;

  std::unique_ptr<HostBatch> make_host_batch(bool) override {
    return std::make_unique<HostBatch>();
  }
  void plan(HostBatch& host, int64_t index) override {
    host.index = index;
    host.tasks = tasks;
  }
  void run_task(HostBatch& host, int task) override {
    std::this_thread::sleep_for(loading);
    if (on_task) on_task(host.index, task);
  }
  Batch prepare(const HostBatch& host) override {
    std::this_thread::sleep_for(preparing);
    const at::Tensor filled = at::full({rows, width}, static_cast<double>(host.index));
    return {.index = host.index, .fields = {filled.sin()}, .rows = rows};
  }
  static bool holds(const Batch& batch) {
    const at::Tensor expected = at::full({1}, static_cast<double>(batch.index)).sin();
    return batch.fields[0].eq(expected).all().item<bool>();
  }
};

}  // namespace tandem::tests
