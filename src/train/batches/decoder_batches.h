// Batches of the decoder's training: those of the GPT, and beside them the sound itself at the
// decoder's rate and the speaker's embedding of each clip.
#pragma once

#include "models/xtts/speaker_encoder.h"
#include "train/batches/gpt_batches.h"

namespace tandem {

enum DecoderField : size_t {
  // the GptField ones first
  decoder_waves = gpt_fields,  // [B, S] float32 at the output rate (24 kHz), 0 beyond; resampled
                               // from the file's own rate
  decoder_wave_lengths,        // [B] int64
  decoder_speakers,            // [B, 512] float32, of length 1; 0 of an empty row
  decoder_fields
};

class DecoderBatches final : public BatchMaker {
 public:
  // `speech` gives voice_sound(..., output_rate). Both models are copied to the data device with
  // the first batch. All must outlive it. Throws Error(internal) for a feed of another second rate.
  DecoderBatches(SpeechFeed& speech, const DvaeEncoder& dvae, const SpeakerEncoder& speaker,
                 int output_rate, const GptBatchOptions& options);
  std::unique_ptr<HostBatch> make_host_batch(bool pinned) override;
  void plan(HostBatch& host, int64_t index) override;
  void run_task(HostBatch& host, int task) override;
  std::vector<int64_t> largest_fields() const override;
  Batch prepare(const HostBatch& host) override;

  const CodeSource& codes() const { return gpt_.codes(); }

 private:
  at::Tensor speakers_of(const SpeechBatch& speech);
  at::Tensor embed(const SpeechBatch& speech) const;

  SpeechFeed& speech_;
  GptBatches gpt_;
  const SpeakerEncoder& source_;
  const int output_rate_;
  ClipMemo memo_;
  std::optional<SpeakerEncoder> speaker_;  // on `device_`
  const LogicalDevice* device_ = nullptr;
};

}  // namespace tandem
