// One request of a speech engine from submit to its result. The engine's thread has it, but for
// what its caller wrote before.
#pragma once

#include <ATen/core/TensorBody.h>

#include <exception>
#include <future>
#include <memory>

#include "generate/speech_engine.h"
#include "util/clock.h"

namespace tandem {

struct Speaking {
  SpeechRequest request;
  at::Tensor prompt;  // [T, D]
  std::promise<SpeechResult> promise;
  SpeechResult result;
  Clock::time_point submitted = Clock::now();
  int place = -1;
  int64_t max_codes = 0;     // the stop code included
  int64_t asked = 0;         // codes asked of the decoder
  int64_t drawn = 0;         // codes, the stop code included: as many latents
  int64_t next_chunk = 0;    // codes at which the next piece of sound is asked for
  int64_t frames_asked = 0;  // of sound
  int64_t pieces_open = 0;   // asked for and not yet delivered
  bool decoded = false;      // no more codes come
  bool over = false;         // the promise is kept

  bool cancelled() const { return request.cancel && request.cancel->load(); }
  // Somebody listens and has heard nothing yet, but all codes of the first piece are asked for, or
  // its sound is.
  bool first_piece_comes() const {
    const bool codes_come = drawn < next_chunk && next_chunk <= asked;
    return request.on_sound && result.samples.empty() && (codes_come || pieces_open > 0);
  }
  void end(SpeechEnd how) {
    decoded = true;
    result.end = how;
  }
  // Keep the promise, once.
  void conclude();
  void fail(std::exception_ptr error);
};
using SpeakingPtr = std::shared_ptr<Speaking>;

}  // namespace tandem
