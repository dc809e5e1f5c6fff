#include "nn/rows/row_prefixes.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/ATen.h>

namespace tandem {

RowPrefixes::RowPrefixes(const GptRows& rows, int64_t positions, int64_t room)
    : positions_(positions),
      heads_(rows.keys(0).size(1)),
      pad_(rows.keys(0).size(3)),
      capacity_(rows.keys(0).size(2)),
      index_(room) {
  std::vector<int64_t> addresses;
  for (size_t layer = 0; layer < rows.layers(); ++layer) {
    for (const at::Tensor& cache : {rows.keys(layer), rows.values(layer)})
      addresses.push_back(reinterpret_cast<int64_t>(cache.const_data_ptr()));
  }
  caches_ = at::tensor(addresses, at::kLong).to(rows.keys(0).device());
  kept_ = at::empty({room, caches_.size(0), heads_, positions_, pad_}, rows.keys(0).options());
}

std::span<const float> RowPrefixes::beginning(const at::Tensor& prompt) const {
  return {prompt.const_data_ptr<float>(), static_cast<size_t>(positions_ * prompt.size(1))};
}

int64_t RowPrefixes::find(const at::Tensor& prompt) { return index_.find(beginning(prompt)); }

void RowPrefixes::copy(PrefixWay way, int64_t copies, const int32_t* slot, const int32_t* place,
                       cudaStream_t stream) const {
  launch_row_prefix({.copies = static_cast<int>(copies),
                     .caches = static_cast<int>(caches_.size(0)),
                     .heads = static_cast<int>(heads_),
                     .pad = static_cast<int>(pad_),
                     .capacity = static_cast<int>(capacity_),
                     .positions = static_cast<int>(positions_),
                     .cache = caches_.const_data_ptr<int64_t>(),
                     .kept = kept_.mutable_data_ptr(),
                     .place = place,
                     .slot = slot,
                     .way = way},
                    stream);
}

void RowPrefixes::put(int64_t copies, const int32_t* slot, const int32_t* place,
                      cudaStream_t stream) const {
  if (copies > 0) copy(PrefixWay::to_places, copies, slot, place, stream);
}

void RowPrefixes::keep(const std::vector<Computed>& computed, c10::cuda::CUDAStream stream) {
  std::vector<int32_t> slots, places;
  for (const Computed& one : computed) {
    // More would take the slots of the first ones again, in the same copy.
    if (static_cast<int64_t>(slots.size()) >= index_.room()) break;
    if (find(one.prompt) >= 0) continue;
    slots.push_back(static_cast<int32_t>(index_.keep(beginning(one.prompt))));
    places.push_back(one.place);
  }
  if (slots.empty()) return;
  const auto copies = static_cast<int64_t>(slots.size());
  at::Tensor both = at::empty({2, copies}, at::TensorOptions().dtype(at::kInt).pinned_memory(true));
  std::copy(slots.begin(), slots.end(), both.mutable_data_ptr<int32_t>());
  std::copy(places.begin(), places.end(), both.mutable_data_ptr<int32_t>() + copies);
  const at::Tensor on_device = both.to(kept_.device(), /*non_blocking=*/true);
  const auto* ints = on_device.const_data_ptr<int32_t>();
  copy(PrefixWay::to_slots, copies, ints, ints + copies, stream);
}

}  // namespace tandem
#endif
