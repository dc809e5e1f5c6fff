#include "models/xtts/code_cache.h"

#include "nn/checksum.h"
#include "util/counted_random.h"

namespace tandem {

std::string code_cache_path(const std::string& index) { return index + ".codes"; }

uint64_t code_recipe(const SpeechOptions& options, const DvaeEncoder& encoder) {
  std::vector<at::Tensor> weights{encoder.codebook, encoder.last.weight, encoder.last.bias};
  for (const auto& layer : encoder.strided)
    weights.insert(weights.end(), {layer.weight, layer.bias});
  for (const auto& block : encoder.residual) {
    for (const auto* layer : {&block.first, &block.second, &block.third})
      weights.insert(weights.end(), {layer->weight, layer->bias});
  }
  if (encoder.mel_stats.defined()) weights.push_back(encoder.mel_stats);
  const auto sum = static_cast<uint64_t>(checksum(weights).item<int64_t>());
  return mix_bits(mel_recipe(options) ^ sum);
}

CacheProgress cache_codes(const ClipIndex& index, const SpeechOptions& options,
                          const DvaeEncoder& encoder, const std::string& path, int workers,
                          const OnCacheProgress& on_progress) {
  const auto make = [&](const Waves& clip) {
    at::NoGradGuard no_grad;
    return encoder.codes(log_mel(clip, options.mel)).to(at::kFloat);  // whole numbers below 2^24
  };
  return fill_cache(index, options, code_recipe(options, encoder), path, workers, make,
                    on_progress);
}

}  // namespace tandem
