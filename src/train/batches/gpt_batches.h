// Batches of the GPT's training, made of SpeechBatches: texts as ids, codes of the clips by the
// DVAE, and mels of a slice that tells the voice. All of it on the data device, without waiting for
// it. All batches of a bucket have the same shapes.
#pragma once

#include <optional>

#include "data/feed/speech_feed.h"
#include "models/xtts/dvae_encoder.h"
#include "train/batches/code_source.h"
#include "train/batches/voice_slices.h"

namespace tandem {

// Fields. Empty rows have lengths of 0; a row without text or without codes teaches nothing.
// Batch::sizes are the places of a row in the GPT without the latents: START text STOP, start codes
// stops.
enum GptField : size_t {
  gpt_text,                  // [B, T] int64, without START and STOP; 0 beyond
  gpt_text_lengths,          // [B] int64
  gpt_codes,                 // [B, N] int64, of the clip at its true length; 0 beyond
  gpt_code_lengths,          // [B] int64: ceil(samples / code stride)
  gpt_conditioning,          // [B, mels, F] float32, divided by mel_stats, 0 beyond: of a slice of
                             // the clip, or of another one of its speaker
  gpt_conditioning_lengths,  // [B] int64: frames that are no padding
  gpt_slice,  // [B, 2] int64: first audio target that is not learned and one behind the last:
              // the codes the slice touches. Equal where nothing is masked, as where the slice is
              // another clip's. Like Coqui it may reach over the stop targets and beyond.
  gpt_whole,  // [B, 2] float32: learned targets of the whole batch (all replicas), of text
              // and of audio, in every row the same; 1 where there is none
  gpt_fields
};

struct GptBatchOptions {
  // The slice, in seconds: drawn between these two; half the clip where it is shorter than that.
  double shortest_slice = 3, longest_slice = 6;
  // Coqui's way: slices filled with silence up to the longest, all of it read as sound; codes of
  // the clip filled up to the batch's longest; of the last row only the targets start / 256 to end
  // / 256 are masked, and none in validation.
  bool like_coqui = false;
  bool validation = false;  // slices are of the mean length and start at 0
  // The slice is that of voice_rows(): chosen while the batch is whole, so that it is the same
  // whatever the replicas. A corpus that names no speaker is one speaker's.
  bool other_clip = false;
  bool masks_slice = true;  // codes of the clip's own slice are not learned: they do not count in
                            // gpt_whole
  int64_t code_stride = 1024;
  uint64_t seed = 0;
};

// What a row of N codes teaches: its codes and 4 stop tokens; of T text ids: T and the stop token.
constexpr int64_t stop_targets = 4;

class GptBatches final : public BatchMaker {
 public:
  // `speech` gives voice_sound(). The DVAE is copied to the data device with the first batch. All
  // must outlive it.
  GptBatches(SpeechFeed& speech, const DvaeEncoder& dvae, const GptBatchOptions& options);

  std::unique_ptr<HostBatch> make_host_batch(bool pinned) override;
  void plan(HostBatch& host, int64_t index) override;
  void run_task(HostBatch& host, int task) override;
  std::vector<int64_t> largest_fields() const override;
  Batch prepare(const HostBatch& host) override;
  // The same for makers that add fields: also what it was made of.
  Batch prepare(const HostBatch& host, SpeechBatch& speech);

  const CodeSource& codes() const { return codes_; }

 private:
  struct Host;
  struct Slices;
  int64_t slice_width(size_t bucket) const;  // samples
  Slices cut_slices(const SpeechBatch& speech);
  std::vector<size_t> voices_from(const SpeechBatch& speech) const;
  const at::Tensor& stats_on(const at::Device& device);
  at::Tensor codes_of(const Host& host, const SpeechBatch& speech,
                      const std::vector<int64_t>& lengths);
  std::vector<int64_t> masked_targets(const SpeechBatch& speech, const Slices& slices,
                                      const std::vector<int64_t>& codes) const;

  SpeechFeed& speech_;
  const DvaeEncoder& dvae_;
  const GptBatchOptions options_;
  const VoiceSliceOptions slicing_;
  CodeSource codes_;
  bool names_speakers_ = false;  // the corpus does
  at::Tensor stats_;             // mel_stats on the data device
};

}  // namespace tandem
