// The inner loops of the CPU front ends, compiled for several instruction sets and chosen once at
// run time. A mel spectrogram takes `width` frames at a time, one a SIMD lane, so that the FFT
// needs no shuffles. Plans hold pointers only; who makes a plan owns the memory. Knows nothing of
// tensors.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem {

// A complex FFT in place, decimation in frequency: passes of radix 8, 4 or 2, largest blocks first.
// Value k of the result lies at `position[k]`.
struct FftPlan {
  int points = 0, passes = 0;
  int radix[12] = {};
  const float* twiddles[12] = {};  // [block / radix, radix - 1, 2] of each pass
  const int32_t* position = nullptr;
};

// See Note below for `columns`, `row` and `offset`.
struct MelPlan {
  FftPlan fft;  // of n_fft / 2 points: even samples are its real, odd ones its imaginary parts
  int n_fft = 0, hop = 0, mels = 0;
  bool magnitude = false;              // else power
  int columns = 0, row = 0;            // of the turned samples
  const int32_t* offset = nullptr;     // [n_fft] where sample n of the frames lies in them
  const float* window = nullptr;       // [n_fft], halved
  const float* turn = nullptr;         // [n_fft / 4 + 1, 2]: cosine, sine of 2 pi k / n_fft
  const int32_t* first_bin = nullptr;  // [mels]
  const int32_t* bin_count = nullptr;  // [mels]
  const float* weights = nullptr;      // of all filters one behind the other
  float clamp = 0, add = 0;            // ln(max(x, clamp) + add)
  const float* divisor = nullptr;      // [mels] or none
};

// Note: samples are turned once. Hop block c of the input becomes column c of a matrix with a row
// for each place in a hop, so sample n of frames f, f+1, ... are neighbours in row n % hop,
// starting at column f + n / hop. Each sample is moved once, not once for each frame it is in.

struct Lanes {
  const char* name;
  int width;                           // frames at a time
  int radix;                           // the largest that fits the registers
  int64_t (*scratch)(const MelPlan&);  // floats needed, to be aligned to 64 bytes
  // The frames that begin at `samples`, `samples + hop`, ...; reads `columns * hop` samples and
  // writes [mels, width] to `out` with `stride` floats from mel to mel.
  void (*mel)(const MelPlan&, const float* samples, float* scratch, float* out, int64_t stride);
  // Outputs from..to of a resampling; `coefficients` is [phases, taps], taps a multiple of 8.
  // Output frame * phases + p is the sum over k of coefficients[p, k] * in[frame * stride +
  // first[p] + k].
  void (*resample)(const float* coefficients, const int32_t* first, int taps, int stride,
                   int phases, const float* in, int64_t from, int64_t to, float* out);
  void (*log)(const float* in, float* out);  // `width` values; for tests of its accuracy
};

const Lanes& lanes();                         // the fastest this processor has
std::vector<const Lanes*> available_lanes();  // all it has

}  // namespace tandem
