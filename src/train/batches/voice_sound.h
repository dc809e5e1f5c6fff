// How sound is prepared for training a voice, and which clips the model can take.
#pragma once

#include "data/feed/speech_feed.h"
#include "models/xtts/xtts_config.h"

namespace tandem {

// The DVAE's mels, at its rate, with waves; what else is done to clips (silence, loudness,
// augmentation) as the settings say. `data.mel` and `data.sample_rate` do not count here.
// `second_rate`: the decoder's (DecoderBatches), 0 for the other stages.
SpeechOptions voice_sound(const DataConfig& config, uint64_t seed, int second_rate = 0);

// Text with START and STOP, codes with start and stops must have positions; no more codes than the
// model will speak.
ClipBounds voice_bounds(const XttsConfig& config);

double seconds_of(const SpeechFeed& feed);  // of the clips in its order

// What of its clips' decoded sound stays in memory, for people.
std::string kept_sound_words(const SpeechFeed& feed);

}  // namespace tandem
