#include "models/xtts/voice.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_file.h"
#include "models/xtts/xtts.h"
#include "tandem/error.h"
#include "util/atomic_file.h"

namespace tandem {
namespace {

constexpr const char* latents_name = "gpt_cond_latent";
constexpr const char* speaker_name = "speaker_embedding";

// [1, 32, D] or [32, D]; [1, 512, 1], [1, 512] or [512].
Voice read_voice(TensorFile& file, const std::string& prefix) {
  const auto read = [&](const char* name) {
    for (const TensorEntry& entry : file.entries())
      if (entry.name == prefix + name) return file.read(entry.name).to(at::kFloat);
    throw Error(ErrorKind::corrupt, fmt::format("`{}` holds no voice: `{}{}` is missing",
                                                file.path().string(), prefix, name));
  };
  Voice voice{read(latents_name), read(speaker_name)};
  if (voice.conditioning.dim() == 3 && voice.conditioning.size(0) == 1)
    voice.conditioning = voice.conditioning.squeeze(0);
  const bool vector = voice.speaker.numel() > 0 &&
                      *std::max_element(voice.speaker.sizes().begin(),
                                        voice.speaker.sizes().end()) == voice.speaker.numel();
  const bool finite = voice.conditioning.isfinite().all().item<bool>() &&
                      voice.speaker.isfinite().all().item<bool>();
  if (voice.conditioning.dim() != 2 || !vector || !finite) {
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}`: `{}{}` and `{}{}` are no voice; expected [1, 32, width] and "
                            "[1, 512, 1] of finite numbers",
                            file.path().string(), prefix, latents_name, prefix, speaker_name));
  }
  return {voice.conditioning.contiguous(), voice.speaker.flatten().contiguous()};
}

}  // namespace

void save_voice(const std::filesystem::path& path, const Voice& voice, const std::string& name) {
  const NamedTensors tensors{{latents_name, voice.conditioning.unsqueeze(0)},
                             {speaker_name, voice.speaker.view({1, -1, 1})}};
  write_file_atomically(path,
                        format_safetensors(tensors, {{"format", "tandem voice"}, {"name", name}}));
}

Voice load_voice(const std::filesystem::path& path) {
  const auto file = open_tensor_file(path);
  return read_voice(*file, "");
}

std::map<std::string, Voice> load_speakers(const std::filesystem::path& path) {
  const auto file = open_tensor_file(path);
  std::map<std::string, Voice> voices;
  const std::string ending = fmt::format("/{}", latents_name);
  for (const TensorEntry& entry : file->entries()) {
    if (!entry.name.ends_with(ending)) continue;
    const std::string name = entry.name.substr(0, entry.name.size() - ending.size());
    voices.emplace(name, read_voice(*file, name + "/"));
  }
  if (voices.empty()) {
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}` holds no voices; expected `NAME/{}` and `NAME/{}`", path.string(),
                            latents_name, speaker_name));
  }
  return voices;
}

void check_voice(const Xtts& model, const Voice& voice, const std::string& name) {
  const int64_t width = model.gpt.size.width, speaker = model.vocoder.size.speaker;
  if (voice.conditioning.size(1) == width && voice.speaker.size(0) == speaker) return;
  throw Error(ErrorKind::data,
              fmt::format("the voice `{}` has the widths {} and {}; this model needs {} and {}",
                          name, voice.conditioning.size(1), voice.speaker.size(0), width, speaker))
      .hint("make it again with this model");
}

}  // namespace tandem
