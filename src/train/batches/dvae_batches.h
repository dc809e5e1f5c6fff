// Batches of the DVAE's training: mels of whole clips, cut to a multiple of 4 frames.
#pragma once

#include "data/feed/speech_feed.h"

namespace tandem {

enum DvaeField : size_t {
  dvae_mels,         // [B, mels, F] float32 log mels as the front end gives them (not divided by
                     // mel_stats), 0 beyond; F is a multiple of 4
  dvae_mel_lengths,  // [B] int64, multiples of 4; 0: an empty row
  dvae_whole,        // [B, 1] float32: frames of the whole batch (all replicas), in every row; 1
                     // where there is none
  dvae_fields
};

class DvaeBatches final : public BatchMaker {
 public:
  // `speech` gives voice_sound(), better without `waves`: mels may come from a cache or the host's
  // threads then.
  explicit DvaeBatches(SpeechFeed& speech) : speech_(speech) {}
  std::unique_ptr<HostBatch> make_host_batch(bool pinned) override;
  void plan(HostBatch& host, int64_t index) override;
  void run_task(HostBatch& host, int task) override;
  std::vector<int64_t> largest_fields() const override;
  Batch prepare(const HostBatch& host) override;

 private:
  SpeechFeed& speech_;
};

// The divisor of each mel: the largest magnitude of its log mels over (at most `clips` evenly
// spread clips of) the feed's clips, as the feed prepares them. [mels] float32 on the CPU. Clips
// that cannot be read are skipped. Throws Error(data) when there is no other.
at::Tensor measure_mel_stats(const SpeechFeed& speech, const MelOptions& mel, int64_t clips = 500);

}  // namespace tandem
