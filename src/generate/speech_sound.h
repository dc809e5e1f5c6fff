// Sound of what a speech engine says: from the latents of requests to their samples, made beside
// the decoding, in pieces where a request streams. Used by the engine's thread.
#pragma once

#include "generate/sound_queue.h"
#include "generate/speaking.h"

namespace tandem {

struct Xtts;

class SpeechSound {
 public:
  SpeechSound(const Xtts& model, LogicalDevice& device, bool own_kernels);

  // The frames that became final since the last time. `latents` are those of all codes so far;
  // with the last of them the request is concluded once its sound is there.
  void ask(const SpeakingPtr& speaking, at::Tensor latents, bool last);
  // Hands to the device what is worth a pass, and over what is done. `decoding`: more will be asked
  // for soon; `waits`: there is nothing else to do.
  void turn(bool decoding, bool waits);
  bool idle() const { return queue_.idle(); }
  void fail_all(const std::exception_ptr& error);

 private:
  void take(const SpeakingPtr& speaking, std::vector<float> samples);

  const Xtts& model_;
  SoundQueue queue_;
  std::vector<SpeakingPtr> sounding_;  // once for each piece not yet delivered
  bool streaming_waits_ = false;
};

}  // namespace tandem
