// A mel spectrogram as a picture: time to the right, low bands at the bottom, loud is bright.
#pragma once

#include <cstdint>
#include <span>

#include "observe/png.h"

namespace tandem {

// From dark violet over blue and green to light yellow. Lightness rises evenly, so that equal steps
// look equal, also in print and to people who tell colours apart badly.
Colour loudness_colour(double share);  // 0 to 1

struct MelView {
  std::span<const float> values;  // [mels, frames], lowest band first
  int64_t mels = 0, frames = 0;
};

// Values are shown between those that a hundredth lies below and a thousandth above; what is not
// finite is shown as the lowest. Small spectrograms are enlarged, long ones thinned to 1600 points.
// Throws Error(internal) when `values` has another size.
Picture mel_picture(const MelView& mel);

}  // namespace tandem
