// Faults on purpose, by rank and step, to test what happens then:
// TANDEM_FAULT="vanish:rank=2,step=5". `rank=data` is the preparation of that step's batch: throw,
// slow, hang, oom.
//   vanish  the rank stops without a word      throw  it fails with an error
//   nan     its gradients are not numbers, from then on, or for `steps` steps
//   slow    it sleeps 0.2 s every step from then on
//   hang    it waits for something that never comes
//   oom     its device has no memory left, once
//   flip    one of its weights becomes another behind that step
//   judge   it fails with an error in the validation behind that step
//   disk    the disk is full when the checkpoint of that step, or a later one, is written
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/feed/batch_maker.h"

namespace tandem {

enum class FaultKind { vanish, throw_error, nan, slow, hang, oom, flip, judge, disk };

struct Fault {
  static constexpr int data = -1;  // the rank of the preparation

  FaultKind kind;
  int rank = 0;
  int64_t step = 0;
  int64_t steps = 1;  // nan: how many, one after another
  bool at_data() const { return rank == data; }
  bool strikes(int at_rank, int64_t at_step) const {
    if (at_rank != rank) return false;
    if (kind == FaultKind::slow || kind == FaultKind::disk) return at_step >= step;
    return at_step >= step && at_step < step + (kind == FaultKind::nan ? steps : 1);
  }
};

// From the text, or nothing when it is empty. Throws Error(config) for a text it does not
// understand.
std::optional<Fault> parse_fault(const std::string& text);
std::optional<Fault> fault_from_environment();

[[noreturn]] void hang();

// Batches whose preparation breaks on purpose.
class FaultyBatches final : public BatchMaker {
 public:
  // `accumulation`: batches a step.
  FaultyBatches(BatchMaker& whole, const Fault& fault, int64_t accumulation)
      : whole_(whole), fault_(fault), accumulation_(accumulation) {}
  std::unique_ptr<HostBatch> make_host_batch(bool pinned) override {
    return whole_.make_host_batch(pinned);
  }
  void plan(HostBatch& host, int64_t index) override { whole_.plan(host, index); }
  void run_task(HostBatch& host, int task) override { whole_.run_task(host, task); }
  std::vector<int64_t> largest_fields() const override { return whole_.largest_fields(); }
  Batch prepare(const HostBatch& host) override;

 private:
  BatchMaker& whole_;
  const Fault fault_;
  const int64_t accumulation_;
};

}  // namespace tandem
