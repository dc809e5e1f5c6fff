#include "models/musicgen/music_sound.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "audio/file/audio_file.h"
#include "audio/file/channels.h"
#include "audio/signal/resample.h"

namespace tandem {
namespace {

at::Tensor side(const at::Tensor& both, int64_t which) { return both.slice(1, which, {}, 2); }

// The first two channels, [2, samples].
at::Tensor read_stereo(const std::string& path) {
  const ChannelSound sound = read_channels(path);
  std::vector<at::Tensor> sides;
  for (size_t i = 0; i < 2; ++i)
    sides.push_back(at::tensor(sound.channels[std::min(i, sound.channels.size() - 1)]));
  const at::Tensor both = at::stack(sides);
  if (!at::isfinite(both).all().item<bool>()) {
    throw AudioError(AudioFault::not_finite,
                     fmt::format("`{}` has samples that are no numbers", path));
  }
  return both;
}

}  // namespace

at::Tensor sound_of_codes(const Encodec& codec, const MusicDecoderSize& size,
                          const at::Tensor& codes) {
  if (size.channels == 1) return codec.decode(codes);
  return at::cat(
      {codec.decode(side(codes, 0).contiguous()), codec.decode(side(codes, 1).contiguous())}, 1);
}

at::Tensor codes_of_sound(const Encodec& codec, const MusicDecoderSize& size,
                          const at::Tensor& sound) {
  const int64_t codebooks = size.codebooks_a_channel();
  if (size.channels == 1) return codec.encode(sound, codebooks);
  const at::Tensor left = codec.encode(sound.narrow(1, 0, 1).contiguous(), codebooks),
                   right = codec.encode(sound.narrow(1, 1, 1).contiguous(), codebooks);
  return at::stack({left, right}, 2).flatten(1, 2);
}

at::Tensor read_prompt_sound(const std::string& path, int64_t rate, int64_t channels) {
  const auto file = open_audio({.path = path});
  const AudioInfo& info = file->info();
  at::Tensor sound;
  if (channels == 2 && info.channels > 1) {
    sound = read_stereo(path);
  } else {
    sound = at::empty({1, info.frames}, at::kFloat);
    file->read_mono(0, info.frames, sound.mutable_data_ptr<float>());
  }
  if (info.sample_rate != rate) {
    const std::vector<int64_t> lengths(static_cast<size_t>(sound.size(0)), info.frames);
    sound = resample({sound, lengths, info.sample_rate}, static_cast<int>(rate)).samples;
  }
  return sound.expand({channels, -1}).contiguous();
}

}  // namespace tandem
