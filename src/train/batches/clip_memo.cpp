#include "train/batches/clip_memo.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace tandem {
namespace {

constexpr int64_t most_bytes = int64_t{256} << 20;

}  // namespace

ClipMemo::ClipMemo(const BatchOrder& order, int64_t clips, at::ScalarType type,
                   const std::function<int64_t(size_t)>& width)
    : order_(order),
      type_(type),
      place_(static_cast<size_t>(clips)),
      kept_(static_cast<size_t>(clips)),
      tables_(order.buckets().size()) {
  int64_t bytes = 0;
  for (size_t b = 0; b < order.buckets().size(); ++b) {
    const std::vector<int64_t>& own = order.buckets()[b].clips;
    for (size_t i = 0; i < own.size(); ++i)
      place_[static_cast<size_t>(own[i])] = static_cast<int64_t>(i);
    bytes +=
        static_cast<int64_t>(own.size()) * width(b) * static_cast<int64_t>(c10::elementSize(type));
  }
  keeps_ = bytes <= most_bytes;
}

bool ClipMemo::knows(const SpeechBatch& batch) const {
  const std::vector<int64_t>& clips = batch.batch.clips;
  return std::all_of(clips.begin(), clips.end(),
                     [&](int64_t clip) { return kept_[static_cast<size_t>(clip)]; });
}

at::Tensor ClipMemo::places(const std::vector<int64_t>& clips, int64_t rows,
                            const at::Device& device) const {
  std::vector<int64_t> found(static_cast<size_t>(rows), 0);
  for (size_t i = 0; i < clips.size(); ++i) found[i] = place_[static_cast<size_t>(clips[i])];
  return at::tensor(found, at::kLong).to(device, /*non_blocking=*/true);
}

at::Tensor ClipMemo::get(const SpeechBatch& batch) const {
  const at::Tensor& table = tables_[batch.bucket];
  const auto rows = static_cast<int64_t>(batch.token_lengths.size());
  return table.index_select(0, places(batch.batch.clips, rows, table.device()));
}

void ClipMemo::keep(const SpeechBatch& batch, const at::Tensor& rows) {
  if (!keeps_) return;
  std::vector<int64_t> clips, from;  // each clip once: a replacement may stand in a batch twice
  for (size_t row = 0; row < batch.batch.clips.size(); ++row) {
    const int64_t clip = batch.batch.clips[row];
    if (kept_[static_cast<size_t>(clip)]) continue;
    kept_[static_cast<size_t>(clip)] = true;
    clips.push_back(clip);
    from.push_back(static_cast<int64_t>(row));
  }
  if (clips.empty()) return;
  at::Tensor& table = tables_[batch.bucket];
  const auto count = static_cast<int64_t>(order_.buckets()[batch.bucket].clips.size());
  if (!table.defined()) table = at::zeros({count, rows.size(1)}, rows.options().dtype(type_));
  const at::Tensor chosen = at::tensor(from, at::kLong).to(rows.device(), /*non_blocking=*/true);
  table.index_copy_(0, places(clips, static_cast<int64_t>(clips.size()), rows.device()),
                    rows.index_select(0, chosen).to(type_));
}

void ClipMemo::forget() {
  std::fill(kept_.begin(), kept_.end(), false);
  std::fill(tables_.begin(), tables_.end(), at::Tensor());
}

}  // namespace tandem
