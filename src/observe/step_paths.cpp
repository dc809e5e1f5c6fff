#include "observe/step_paths.h"

#include "observe/music_bench.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>

#include "device/cuda_owner.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "generate/cuda_music_decoder.h"
#include "models/musicgen/delay_pattern.h"
#include "models/musicgen/musicgen.h"
#include "nn/parameters.h"
#endif

namespace tandem {

std::vector<StepPath> measure_step_paths(const std::function<double(const FewRows&)>& seconds) {
  return {{"kernels in turn", seconds({.whole = false, .early = false})},
          {"keys fetched ahead", seconds({.whole = false, .early = true})},
          {"one kernel", seconds({.whole = true, .early = true})}};
}

#ifdef TANDEM_WITH_CUDA
std::vector<StepPath> music_step_paths(const Musicgen& model, LogicalDevice& device,
                                       const MusicBenchOptions& options) {
  if (device.kind() != DeviceKind::cuda || options.precision == "fp32") return {};
  const DeviceScope scope(device);
  if (!half_kernels_run()) return {};
  const c10::cuda::CUDAStream stream = raw_cuda_stream(device.compute_stream());
  const c10::cuda::CUDAStreamGuard guard(stream);
  const MusicDecoderSize& size = model.decoder.size;
  const int64_t text_width = model.decoder.text_projection.weight.defined()
                                 ? model.decoder.text_projection.weight.size(1)
                                 : size.width;
  const at::Tensor text =
      make_parameter(1, "caption", {options.text_tokens, text_width}, 1.0).to(stream.device());
  const DelayPattern pattern{.codebooks = size.codebooks,
                             .channels = size.channels,
                             .pad_token = size.pad_token,
                             .columns = 1 + options.steps};
  return measure_step_paths([&](const FewRows& few_rows) {
    CudaMusicDecoder decoder(model.decoder,
                             {.half = options.precision == "bf16" ? RowHalf::bf16 : RowHalf::fp16,
                              .eight_bit_cache = options.cache == "int8",
                              .few_rows = few_rows},
                             stream);
    decoder.reserve({.clips = 1, .columns = pattern.columns, .text = options.text_tokens});
    decoder.read_text(0, text);
    decoder.decode(
        {.forced = pattern.forced(at::empty({1, size.codebooks, 0}, at::kLong)), .seeds = {1}});
    return decoder.seconds() / static_cast<double>(decoder.steps());
  });
}
#else
std::vector<StepPath> music_step_paths(const Musicgen&, LogicalDevice&, const MusicBenchOptions&) {
  return {};
}
#endif

}  // namespace tandem
