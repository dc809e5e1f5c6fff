#ifdef TANDEM_WITH_CUDA
#include "nn/gpt_step/gpt_buffers.h"

#include <ATen/ATen.h>

namespace tandem {

at::Tensor GptBuffers::take(at::IntArrayRef shape, at::ScalarType type) {
  at::Tensor tensor = at::empty(shape, at::TensorOptions(at::kCUDA).dtype(type));
  bytes += tensor.nbytes();
  return tensor;
}

void GptBuffers::take_fp8(const GptSizes& sizes, int64_t places) {
  const int64_t width = sizes.width;
  expand_parts = gelu_fp8_parts;
  fp8_data = take({6 * places * width + (1 + kept) * 12 * width * width}, at::kByte);
  fp8_scales = take({3 * places + (1 + kept) * 4 * 4 * width}, at::kFloat);
  fp8_largest = take({sizes.layers, 16 * width}, at::kFloat);
  auto* data = fp8_data.data_ptr<uint8_t>();
  auto* scales = fp8_scales.data_ptr<float>();
  const auto part = [&](int64_t count, int64_t rows) {
    return Fp8Rows{std::exchange(data, data + count), std::exchange(scales, scales + rows)};
  };
  fp8_normed = part(places * width, places);
  fp8_masked = part(places * width, places);
  fp8_wide = part(4 * places * width, places);
  const auto weights = [&] {
    Fp8Weights all;
    for (const auto& [weight, widths] : {std::pair{fp8_qkv, 3}, std::pair{fp8_project, 1},
                                         std::pair{fp8_expand, 4}, std::pair{fp8_contract, 4}})
      all[weight] = part(widths * width * width, 4 * width);
    return all;
  };
  fp8_turned = weights();
  for (int64_t i = 0; i < kept; ++i) fp8_straight.push_back(weights());
}

GptBuffers::GptBuffers(const GptSizes& sizes, const GptStepOptions& options) {
  const int64_t places = options.most_places, width = sizes.width;
  const int64_t tokens = sizes.text_tokens + sizes.audio_tokens;
  kept = options.recompute ? 1 : sizes.layers;
  most_slots = options.most_rows * options.longest;
  constexpr auto half = at::kBFloat16, full = at::kFloat;

  x = take({sizes.layers + 1, places, width}, half);
  middle = take({kept, places, width}, half);
  qkv = take({kept, places, 3 * width}, half);
  attended = take({kept, places, width}, half);
  before_gelu = take({kept, places, 4 * width}, half);
  logsumexp = take({kept, sizes.heads * places}, full);
  stats = take({sizes.layers, 2, places, 2}, full);

  const int64_t more = std::max(places, most_slots);
  const int64_t text = sizes.padded(sizes.text_tokens), audio = sizes.padded(sizes.audio_tokens);
  const int64_t larger = std::max(text, audio);
  at::Tensor thin = take({std::max(places * width, (text + audio) * (width + 1)) + 16}, half);
  branch = thin.narrow(0, 0, places * width).view({places, width});
  const auto cut = [](const at::Tensor& from, int64_t at, at::IntArrayRef shape) {
    return from.narrow(0, at, c10::multiply_integers(shape)).view(shape);
  };
  text_head = cut(thin, 0, {text, width});
  audio_head = cut(thin, text * width, {audio, width});
  text_head_bias = cut(thin, (text + audio) * width, {text});
  audio_head_bias = cut(thin, (text + audio) * width + text, {audio});
  normed = take({more, width}, half);
  head_inputs = normed;
  head_flow = take({most_slots, width}, half);
  flow = take({places, width}, half);
  masked = options.dropout > 0 ? take({places, width}, half) : flow;
  const at::Tensor thick = take({std::max(2 * places * 4 * width, 256 * larger)}, half);
  wide = cut(thick, 0, {2, places, 4 * width});
  logits = thick;
  dots = take({sizes.heads * places}, full);
  slot_losses = take({most_slots}, full);
  slot_hits = take({most_slots}, full);
  losses = take({2}, full);
  recall = take({2}, full);
  hits = take({2}, full);
  latents_gradient = take({options.most_rows, options.latents, width}, full);

  if (options.fp8) take_fp8(sizes, places);
  const int64_t norm_sums = most_sum_blocks * 3 * width, wide_sums = expand_parts * 4 * width;
  const int64_t head_sums = std::max<int64_t>(
      most_sum_blocks * 5 * width, column_parts * std::max(sizes.text_tokens, sizes.audio_tokens));
  partial = take({sum_slots * (2 * norm_sums + 2 * wide_sums) + head_sums}, full);
  head = partial.data_ptr<float>();
  for (LayerSums& sums : layer_sums) {
    sums.first_norm = head;
    sums.second_norm = sums.first_norm + norm_sums;
    sums.expand = sums.second_norm + norm_sums;
    sums.qkv_bias = sums.expand + wide_sums;
    head = sums.qkv_bias + wide_sums;
  }

  numbers = take({2 * options.most_rows + 2 + 3 * places + 3 * most_slots + tokens + 1}, at::kInt);
  int32_t* next = numbers.data_ptr<int32_t>();
  const auto part = [&](int64_t count) { return std::exchange(next, next + count); };
  packing.starts = part(2 * options.most_rows + 2);
  packing.token = part(places);
  packing.position = part(places);
  packing.slot = part(places);
  packing.place = part(most_slots);
  packing.target = part(most_slots);
  packing.read = part(most_slots);
  packing.counts = part(tokens);
  packing.misfits = part(1);
}

}  // namespace tandem
#endif
