#include <array>

#include "audio/signal/mel.h"

namespace tandem {
namespace {

// What the XTTS front ends share: powers, HTK scale, filters of equal area.
constexpr MelOptions xtts(int n_fft, int hop, int window_length) {
  return {.n_fft = n_fft,
          .hop = hop,
          .window_length = window_length,
          .f_max = 8000,
          .power = 2,
          .scale = MelScale::htk};
}

struct FrontEnd {
  std::string_view name;
  MelOptions (*options)();
};
constexpr std::array front_ends{FrontEnd{"default", mel_default},
                                FrontEnd{"xtts_dvae", mel_xtts_dvae},
                                FrontEnd{"xtts_conditioning", mel_xtts_conditioning},
                                FrontEnd{"xtts_conditioning_v1", mel_xtts_conditioning_v1},
                                FrontEnd{"speaker_encoder", mel_speaker_encoder}};

}  // namespace

MelOptions mel_default() { return {}; }
MelOptions mel_xtts_dvae() { return xtts(1024, 256, 1024); }
MelOptions mel_xtts_conditioning() { return xtts(2048, 256, 1024); }
MelOptions mel_xtts_conditioning_v1() { return xtts(4096, 1024, 4096); }
MelOptions mel_speaker_encoder() {
  return {.sample_rate = 16000,
          .n_fft = 512,
          .hop = 160,
          .window_length = 400,
          .window = WindowShape::hamming,
          .mels = 64,
          .f_max = 8000,
          .power = 2,
          .scale = MelScale::htk,
          .area_norm = false,
          .clamp = 0,
          .add = 1e-6,
          .preemphasis = 0.97,
          .standardise = true};
}

std::optional<MelOptions> find_mel(std::string_view name) {
  for (const FrontEnd& end : front_ends)
    if (end.name == name) return end.options();
  return std::nullopt;
}

std::vector<std::string_view> mel_names() {
  std::vector<std::string_view> names;
  for (const FrontEnd& end : front_ends) names.push_back(end.name);
  return names;
}

}  // namespace tandem
