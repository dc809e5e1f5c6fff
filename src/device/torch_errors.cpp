#include "device/torch_errors.h"

#include <c10/util/Exception.h>
#include <torch/headeronly/version.h>

#ifdef TANDEM_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

#include "util/text.h"

namespace tandem {

Explanation explain_with_torch(const std::exception& error) {
  const auto* theirs = dynamic_cast<const c10::Error*>(&error);
  if (!theirs) return explain(error);
  Explanation out;
  const bool memory = dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr;
  out.kind = memory ? ErrorKind::memory : ErrorKind::internal;
  out.sentence = split(theirs->what_without_backtrace(), '\n').front();
  if (memory) out.hint = "try a smaller --batch-size or --buffer-size, or --grad-accum";
  return out;
}

TorchVersions torch_versions() {
  TorchVersions versions;
  versions.torch =
      fmt::format("{}.{}.{}", TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH);
#ifdef TANDEM_WITH_CUDA
  versions.cuda = fmt::format("{}.{}", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
#endif
  return versions;
}

}  // namespace tandem
