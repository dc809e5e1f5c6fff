#include "models/xtts/mel_stats.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "checkpoint/tensor_file.h"
#include "tandem/error.h"

namespace tandem {

std::filesystem::path find_mel_stats(const std::filesystem::path& folder) {
  for (const char* name : {"mel_stats.safetensors", "mel_stats.pth", "mel_norms.pth"}) {
    if (std::filesystem::exists(folder / name)) return folder / name;
  }
  return {};
}

at::Tensor read_mel_stats(const std::filesystem::path& path) {
  const auto file = open_tensor_file(path);
  if (file->entries().size() != 1) {
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}` holds {} tensors; expected one, the mel_stats", path.string(),
                            file->entries().size()));
  }
  return file->read(file->entries().front().name).to(at::kFloat).contiguous();
}

}  // namespace tandem
