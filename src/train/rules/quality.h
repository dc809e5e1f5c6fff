// How good a voice is, measured on validation clips: functions of tensors on any device. Except for
// the one that warps time, none waits for the device. What is summed over clips comes as sums and
// counts, so that parts of replicas and batches add up.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>

namespace tandem {

// --- sound ---

struct CepstrumOptions {
  int64_t coefficients = 13;  // without the 0th, which is loudness
  double power = 2;           // of the mels under the logarithm: 2 power, 1 magnitude
};

// log_mels [..., mels, frames] (natural logarithm) -> [..., coefficients, frames]: the envelope of
// log magnitudes as a sum of cosines, c_1 cos(x) + c_2 cos(2x) + ...
at::Tensor mel_cepstrum(const at::Tensor& log_mels, const CepstrumOptions& options = {});

// Mel-cepstral distortion in dB: 10 / ln 10 * sqrt(2 * sum of squared differences), mean over
// frames. It is the root mean square difference of the smooth spectra.
// Frame by frame: a, b [B, mels, F], lengths [B] -> [B]; 0 for rows without frames.
at::Tensor cepstral_distortion(const at::Tensor& a, const at::Tensor& b, const at::Tensor& lengths,
                               const CepstrumOptions& options = {});
// Along the path through time that costs least (steps of one frame in either or both): a [mels, F],
// b [mels, G], both with frames. Mean over the path. Waits for the device.
double warped_cepstral_distortion(const at::Tensor& a, const at::Tensor& b,
                                  const CepstrumOptions& options = {});

// Cosine of the angle between speaker embeddings: [B, E], [B, E] -> [B].
at::Tensor speaker_similarity(const at::Tensor& a, const at::Tensor& b);

// --- codes ---

// How many targets are the likeliest token. logits [B, tokens, places], targets [B, places] int64,
// below 0: not counted. -> [2] float32: hits, targets.
at::Tensor count_hits(const at::Tensor& logits, const at::Tensor& targets);

// How often each code occurs: codes of any shape, below 0: not counted -> [size] float32.
at::Tensor count_codes(const at::Tensor& codes, int64_t size);
// Of such counts, [] float32: the share of codes that occur; the number of equally frequent codes
// that would be as varied. Both 0 where nothing was counted.
at::Tensor code_usage(const at::Tensor& counts);
at::Tensor code_perplexity(const at::Tensor& counts);

// Whether the model knows where a clip ends. `stop` [B, places]: probability of the stop token with
// the clip's own codes before it; place `code_lengths`[b] is where it should begin. It is said to
// begin at the first place with half of the largest probability up to 3 places behind the end.
// -> [3] float32: clips where it begins at most one place off, sum of places it begins too late
// (too early: below 0), clips. Rows without codes do not count.
at::Tensor judge_stops(const at::Tensor& stop, const at::Tensor& code_lengths);

}  // namespace tandem
