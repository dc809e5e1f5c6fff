#include "generate/music_engine.h"

#include "device/logical_device.h"
#include "generate/speech_decoder.h"
#include "tandem/error.h"

namespace tandem {

std::unique_ptr<MusicEngine> make_music_engine(const Musicgen& model, LogicalDevice& device,
                                               const MusicEngineOptions& options) {
  const bool halves = device.kind() == DeviceKind::cuda && has_half_kernels(device);
  if (halves && options.precision != "fp32") return make_cuda_music_engine(model, device, options);
  return make_plain_music_engine(model, device, options);
}

}  // namespace tandem
