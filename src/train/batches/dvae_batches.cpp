#include "train/batches/dvae_batches.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "audio/signal/ragged.h"
#include "data/corpus/parallel_rows.h"
#include "data/feed/clip_shape.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/signals.h"

namespace tandem {
namespace {

constexpr int64_t whole = 4;  // frames a code

}  // namespace

std::unique_ptr<HostBatch> DvaeBatches::make_host_batch(bool pinned) {
  return speech_.batches.make_host_batch(pinned);
}

void DvaeBatches::plan(HostBatch& host, int64_t index) { speech_.batches.plan(host, index); }

void DvaeBatches::run_task(HostBatch& host, int task) { speech_.batches.run_task(host, task); }

std::vector<int64_t> DvaeBatches::largest_fields() const {
  std::vector<int64_t> largest(dvae_fields);
  for (size_t bucket = 0; bucket < speech_.order.buckets().size(); ++bucket) {
    const int64_t rows = speech_.order.buckets()[bucket].rows;
    const int64_t frames = speech_.batches.frames_of(bucket) / whole * whole;
    largest[dvae_mels] =
        std::max(largest[dvae_mels], rows * frames * speech_.batches.options().mel.mels);
    for (const size_t field : {dvae_mel_lengths, dvae_whole})
      largest[field] = std::max(largest[field], rows);
  }
  return largest;
}

Batch DvaeBatches::prepare(const HostBatch& host) {
  SpeechBatch speech = speech_.batches.make(host);
  RECORD_FUNCTION("tandem::dvae_mels", std::vector<c10::IValue>{});
  const at::Tensor& mels = speech.batch.fields[speech_mels];
  const int64_t width = mels.size(2) / whole * whole;
  int64_t sum = 0;
  for (int64_t& length : speech.mel_lengths) sum += length = length / whole * whole;
  const at::Tensor within =
      within_rows(speech.mel_lengths, width, mels.device()).unsqueeze(1);  // [B, 1, F]
  const at::Tensor frames =
      at::full({mels.size(0), 1}, static_cast<double>(std::max<int64_t>(1, sum)), mels.options());
  Batch batch = std::move(speech.batch);
  batch.fields = {mels.narrow(2, 0, width) * within, row_lengths(speech.mel_lengths, mels.device()),
                  frames};
  return batch;
}

at::Tensor measure_mel_stats(const SpeechFeed& speech, const MelOptions& mel, int64_t clips) {
  std::vector<int64_t> all;
  for (const Bucket& bucket : speech.order.buckets())
    all.insert(all.end(), bucket.clips.begin(), bucket.clips.end());
  std::sort(all.begin(), all.end());
  const auto held = static_cast<int64_t>(all.size());
  const int64_t count = std::min(clips, held);
  SpeechOptions options = speech.batches.options();
  options.sample_rate = mel.sample_rate;

  std::mutex mutex;
  at::Tensor largest = at::zeros({mel.mels});
  int64_t read = 0;
  std::string first_fault;
  const auto work = [&](int64_t i) {
    const int64_t clip = all[static_cast<size_t>(i * held / count)];
    try {
      const Waves waves = read_clip(speech.corpus.index(), clip, options);
      const auto frames = mel_frames(waves.lengths[0], mel);
      const at::Tensor made = at::empty({mel.mels, frames});
      log_mel_clip(waves.samples.const_data_ptr<float>(), waves.lengths[0], mel, frames,
                   made.mutable_data_ptr<float>(), frames);
      if (frames == 0) return;
      const at::Tensor own = made.abs().amax(1);
      const std::lock_guard lock(mutex);
      largest = at::maximum(largest, own);
      ++read;
    } catch (const AudioError& error) {
      log_debug("clip {} says nothing about the mels: {}", clip, error.what());
      const std::lock_guard lock(mutex);
      if (first_fault.empty()) first_fault = error.what();
    }
  };
  const auto look = [](int64_t) {
    const StopRequest stop = stop_requested();
    if (stop == StopRequest::none) return;
    throw Error(stop == StopRequest::interrupted ? ErrorKind::interrupted : ErrorKind::terminated,
                "stopped while measuring the mels of the corpus");
  };
  for_rows(count, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())), work, look);
  if (read == 0) {
    throw Error(ErrorKind::data,
                fmt::format("none of the {} clips looked at for mel statistics can be read: {}",
                            count, first_fault))
        .hint("is the dataset still where it was prepared?");
  }
  return largest.clamp_min(1e-5);
}

}  // namespace tandem
