#include <ATen/ATen.h>

#include "models/xtts/sound_window.h"

namespace tandem {
namespace {

class PlainSoundMaker final : public SoundMaker {
 public:
  explicit PlainSoundMaker(const Vocoder& vocoder) : vocoder_(vocoder) {}

  std::vector<at::Tensor> sound(const std::vector<SoundWindow>& windows) override {
    std::vector<at::Tensor> sounds;
    for (const SoundWindow& window : windows) {
      const int64_t from = window.from(vocoder_), step = vocoder_.samples_a_frame();
      const at::Tensor frames =
          vocoder_.frames(window.latents.unsqueeze(0), from, window.to(vocoder_) - from);
      const at::Tensor all =
          vocoder_.sound(frames, window.speaker.to(frames.device()).unsqueeze(0)).squeeze(0);
      sounds.push_back(all.narrow(0, (window.first - from) * step, window.count * step));
    }
    return sounds;
  }

 private:
  const Vocoder& vocoder_;
};

}  // namespace

std::unique_ptr<SoundMaker> make_plain_sound_maker(const Vocoder& vocoder) {
  return std::make_unique<PlainSoundMaker>(vocoder);
}

}  // namespace tandem
