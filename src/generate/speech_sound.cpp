#include "generate/speech_sound.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "models/xtts/xtts.h"

namespace tandem {
namespace {

// Frames of finished clips that are worth a pass of their own while others are still decoding.
constexpr int64_t enough_frames = 4096;

// At another speed there are more or fewer of them; while more may come, only those that can no
// longer change.
at::Tensor spoken_latents(const at::Tensor& latents, double speed, bool last) {
  if (speed == 1.0) return latents;
  const at::Tensor spoken = at_speed(latents.unsqueeze(0), speed).squeeze(0).contiguous();
  if (last) return spoken;
  const auto known = static_cast<int64_t>((static_cast<double>(latents.size(0)) - 1.5) / speed) - 1;
  return spoken.narrow(0, 0, std::clamp<int64_t>(known, 0, spoken.size(0)));
}

}  // namespace

SpeechSound::SpeechSound(const Xtts& model, LogicalDevice& device, bool own_kernels)
    : model_(model), queue_(model.vocoder, device, own_kernels) {}

void SpeechSound::ask(const SpeakingPtr& speaking, at::Tensor latents, bool last) {
  const SpeechRequest& request = speaking->request;
  if (last && request.keep_latents) speaking->result.latents = latents.cpu();
  latents = spoken_latents(latents, request.speed, last);
  const int64_t codes = latents.size(0);
  const int64_t frames =
      last ? model_.vocoder.frames_of(codes) : final_frames(model_.vocoder, codes);
  const int64_t count = frames - speaking->frames_asked;
  if (count <= 0) {
    if (last && speaking->pieces_open == 0) speaking->conclude();
    return;
  }
  ++speaking->pieces_open;
  sounding_.push_back(speaking);
  queue_.add({.latents = latents,
              .speaker = request.voice.speaker,
              .last = last,
              .first = speaking->frames_asked,
              .count = count},
             [this, speaking](std::vector<float> samples) { take(speaking, std::move(samples)); });
  speaking->frames_asked = frames;
  streaming_waits_ = streaming_waits_ || request.on_sound != nullptr;
}

void SpeechSound::turn(bool decoding, bool waits) {
  if (queue_.waiting_frames() >= enough_frames || !decoding || streaming_waits_) queue_.flush();
  streaming_waits_ = false;
  queue_.deliver(waits);
}

void SpeechSound::take(const SpeakingPtr& speaking, std::vector<float> samples) {
  --speaking->pieces_open;
  std::erase(sounding_, speaking);
  for (int64_t i = 0; i < speaking->pieces_open; ++i) sounding_.push_back(speaking);
  if (speaking->over) return;
  SpeechResult& result = speaking->result;
  if (result.samples.empty()) result.first_sound_seconds = seconds_since(speaking->submitted);
  if (speaking->request.on_sound && !speaking->cancelled()) speaking->request.on_sound(samples);
  if (result.samples.empty()) {
    result.samples = std::move(samples);
  } else {
    result.samples.insert(result.samples.end(), samples.begin(), samples.end());
  }
  if (speaking->decoded && speaking->pieces_open == 0) speaking->conclude();
}

void SpeechSound::fail_all(const std::exception_ptr& error) {
  for (const SpeakingPtr& speaking : sounding_) speaking->fail(error);
}

}  // namespace tandem
