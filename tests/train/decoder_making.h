// Narrow decoders, and batches for them made by hand.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/ATen.h>

#include <map>
#include <string>
#include <vector>

#include "models/xtts_narrow.h"
#include "train/batches/decoder_batches.h"
#include "train/stages/decoder_learner.h"

namespace tandem::tests {

inline Discriminators narrow_judges() {
  return Discriminators::make({.width = 32, .periods = {2, 3}, .scales = 2}, 3);
}

inline DecoderLearner narrow_decoder(const DecoderLearnerOptions& options = {.segment_codes = 4}) {
  // Where a distance is almost 0 the last bit, which the number of threads decides, turns the sign
  // of its gradient.
  at::set_num_threads(1);
  return DecoderLearner(narrow_xtts(), narrow_judges(), at::kCPU, options);
}

struct MadeClip {
  int64_t text = 5, codes = 10;
  std::string name = "clip";
};

// Padded to `most_codes` codes and 12 text ids; what is beyond a row's length is filled with
// numbers nobody may read. Clips without codes are empty rows.
inline Batch made_decoder_batch(const std::vector<MadeClip>& clips, int64_t most_codes,
                                int64_t whole_rows = 0) {
  const auto rows = static_cast<int64_t>(clips.size());
  const int64_t samples = most_codes * 1115;
  Batch batch;
  const auto whole = [&](const Shape& shape) { return at::full(shape, 7, at::kLong); };
  batch.fields = {whole({rows, 12}),
                  at::zeros({rows}, at::kLong),
                  whole({rows, most_codes}),
                  at::zeros({rows}, at::kLong),
                  at::full({rows, 80, 30}, 5.0),
                  at::zeros({rows}, at::kLong),
                  at::zeros({rows, 2}, at::kLong),
                  at::ones({rows, 2}),
                  at::full({rows, samples}, 0.3),
                  at::zeros({rows}, at::kLong),
                  at::zeros({rows, 12})};
  for (int64_t row = 0; row < rows; ++row) {
    const MadeClip& clip = clips[static_cast<size_t>(row)];
    if (clip.codes == 0) continue;
    ++batch.rows;
    const auto put = [&](size_t field, const at::Tensor& source, int64_t count) {
      batch.fields[field][row].narrow(-1, 0, count).copy_(source);
    };
    put(gpt_text, whole_numbers(clip.name + ".text", {clip.text}, 30) + 1, clip.text);
    batch.fields[gpt_text_lengths][row] = clip.text;
    put(gpt_codes, whole_numbers(clip.name + ".codes", {clip.codes}, 32), clip.codes);
    batch.fields[gpt_code_lengths][row] = clip.codes;
    put(gpt_conditioning, values(clip.name + ".mels", {80, 13}), 13);
    batch.fields[gpt_conditioning_lengths][row] = 13;
    const int64_t length = clip.codes * 1114 - 300;
    put(decoder_waves, values(clip.name + ".wave", {length}, 0.2), length);
    batch.fields[decoder_wave_lengths][row] = length;
    const at::Tensor speaker = values(clip.name + ".speaker", {12});
    put(decoder_speakers, speaker / speaker.norm(), 12);
  }
  batch.whole_rows = whole_rows > 0 ? whole_rows : batch.rows;
  return batch;
}

inline StepValues decoder_step(int64_t step) {
  return {.step = at::scalar_tensor(step, at::kLong),
          .number = step,
          .scale = at::ones({}),
          .seed = 11,
          .run_seed = 11};
}

// Gradients wanted and zero, as the loop makes them.
inline void want_gradients(Learner& learner) {
  for (Phase& phase : learner.phases()) {
    for (TrainedTensor& trained : phase.tensors) {
      trained.tensor->requires_grad_(true);
      trained.tensor->mutable_grad() = at::zeros_like(*trained.tensor);
    }
  }
}

inline std::map<std::string, at::Tensor> decoder_gradients(Learner& learner) {
  std::map<std::string, at::Tensor> found;
  for (Phase& phase : learner.phases())
    for (TrainedTensor& trained : phase.tensors)
      found[trained.name] = trained.tensor->grad().clone();
  return found;
}

}  // namespace tandem::tests
