#include "observe/diagnose/kept_batches.h"

#include <ATen/ATen.h>

#include <optional>

#include "device/logical_device.h"
#include "tandem/error.h"

namespace tandem {

namespace {

constexpr size_t most_kept = 8;
constexpr double most_memory_kept = 0.02, seconds_to_wait = 3;

}  // namespace

void KeptBatches::add(const Batch& batch, LogicalDevice& device) {
  Batch copy = batch;
  device.compute_stream().run([&] {
    const at::NoGradGuard no_grad;
    for (at::Tensor& field : copy.fields) field = field.clone();
  });
  device.compute_stream().synchronize();
  batches_.push_back(std::move(copy));
}

std::vector<KeptBatches> keep_batches(Feed& feed, const std::vector<LogicalDevice*>& models,
                                      Figures& figures) {
  std::vector<KeptBatches> kept(models.size());
  const auto began = Clock::now();
  double bytes = 0;
  do {
    for (size_t rank = 0; rank < models.size(); ++rank) {
      const std::optional<BatchLease> lease = feed.next(static_cast<int>(rank));
      if (!lease) throw Error(ErrorKind::data, "the data gives no batch");
      kept[rank].add(**lease, *models[rank]);
      if (rank > 0) continue;
      for (const at::Tensor& field : (*lease)->fields) bytes += static_cast<double>(field.nbytes());
    }
    if (kept[0].size() == 1) figures.first_batch = seconds_since(began);
    const auto limit = static_cast<double>(models.front()->info().memory_limit);
    const double next = bytes * (1 + 1 / static_cast<double>(kept[0].size()));
    if (limit > 0 && next > most_memory_kept * limit) break;
  } while (kept[0].size() < most_kept && seconds_since(began) < seconds_to_wait);
  return kept;
}

}  // namespace tandem
