// The host part of a batch of speech. Private to the feed.
#pragma once

#include "data/feed/speech_batches.h"

namespace tandem {

struct SpeechBatches::Row {
  int64_t clip = -1;  // -1: empty
  int64_t frames = 0;
  int sample_rate = 0;
};

struct SpeechBatches::HostSpeech final : HostBatch {
  explicit HostSpeech(bool page_locked) : pinned(page_locked) {}
  const bool pinned;
  PlannedBatch planned;
  std::vector<Row> rows;
  int64_t width = 0;         // samples a row has room for
  at::Tensor samples;        // flat [rows * width], float32; zero beyond a row's frames
  at::Tensor tokens;         // flat [rows * T], int64
  at::Tensor token_lengths;  // flat [rows], int64
  int64_t token_width = 0;
  at::Tensor mels;  // made on the host or cached: flat [rows * mels * F]; then no `samples`
  std::vector<int64_t> mel_lengths;
};

}  // namespace tandem
