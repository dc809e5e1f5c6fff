#include "data/feed/speech_batches.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "audio/signal/augment.h"
#include "audio/signal/loudness.h"
#include "audio/signal/ragged.h"
#include "audio/signal/resample.h"
#include "audio/signal/trim.h"
#include "data/feed/speech_host.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "util/counted_random.h"

namespace tandem {
namespace {

at::Tensor to_device(const at::Tensor& host) {
  const LogicalDevice* device = DeviceScope::current();
  if (!device || device->kind() == DeviceKind::cpu) return host;
  return host.to(device->torch_device(), host.scalar_type(), /*non_blocking=*/true, /*copy=*/true);
}

at::Tensor length_tensor(const std::vector<int64_t>& lengths) {
  return to_device(at::tensor(lengths, at::kLong));
}

// Cuts what is silent in `waves` off both; a row of silence alone stays whole.
void trim_both(Waves& waves, Waves& second, double top_db) {
  if (!second.samples.defined()) {
    waves = trim_ends(waves, {.top_db = top_db});
    return;
  }
  Trimmed trimmed = trim_silence(waves, {.top_db = top_db});
  std::vector<int64_t> lengths = trimmed.waves.lengths, starts(lengths.size()), kept;
  for (const int64_t row : trimmed.silent) {
    trimmed.starts[static_cast<size_t>(row)] = 0;
    lengths[static_cast<size_t>(row)] = waves.lengths[static_cast<size_t>(row)];
  }
  for (size_t row = 0; row < lengths.size(); ++row) {
    starts[row] = trimmed.starts[row] * second.sample_rate / waves.sample_rate;
    kept.push_back(std::min(second.lengths[row] - starts[row],
                            resampled_length(lengths[row], waves.sample_rate, second.sample_rate)));
  }
  const auto widest = [](const std::vector<int64_t>& all) {
    return *std::max_element(all.begin(), all.end());
  };
  const int64_t width = widest(lengths), second_width = widest(kept);
  waves = cut(waves, trimmed.starts, std::move(lengths), width);
  second = cut(second, starts, std::move(kept), second_width);
}

// Starts are in steps of 1/150 s, which is a whole number of samples at 22.05 and at 24 kHz: both
// begin at the same moment.
constexpr int jitter_steps_a_second = 150;

void begin_later(Waves& waves, const std::vector<int64_t>& steps) {
  std::vector<int64_t> starts, lengths;
  for (size_t row = 0; row < steps.size(); ++row) {
    const int64_t start = steps[row] * waves.sample_rate / jitter_steps_a_second;
    starts.push_back(std::min(start, std::max<int64_t>(0, waves.lengths[row] - 1)));
    lengths.push_back(waves.lengths[row] - starts.back());
  }
  waves = cut(waves, starts, std::move(lengths), waves.samples.size(1));
}

}  // namespace

int64_t SpeechBatches::samples_of(size_t bucket, int rate) const {
  // A bucket's seconds may be a number of samples divided by their rate: that number comes back.
  return std::llround(std::ceil(order_.buckets()[bucket].seconds * rate - 1e-6));
}

int64_t SpeechBatches::frames_of(size_t bucket) const {
  return mel_frames(samples_of(bucket), options_.mel);
}

std::vector<int64_t> SpeechBatches::largest_fields() const {
  std::vector<int64_t> largest(options_.waves ? 6 : 4);
  for (size_t bucket = 0; bucket < order_.buckets().size(); ++bucket) {
    const int64_t rows = order_.buckets()[bucket].rows;
    const auto grow = [&](size_t field, int64_t a_row) {
      if (field < largest.size()) largest[field] = std::max(largest[field], rows * a_row);
    };
    grow(speech_tokens, order_.buckets()[bucket].tokens);
    grow(speech_mels, options_.mel.mels * frames_of(bucket));
    grow(speech_waves, samples_of(bucket));
    for (const size_t lengths : {speech_token_lengths, speech_mel_lengths, speech_wave_lengths})
      grow(lengths, 1);
  }
  return largest;
}

SpeechBatch SpeechBatches::make(const HostBatch& base) {
  const auto& host = static_cast<const HostSpeech&>(base);
  const auto rows = static_cast<int64_t>(host.rows.size());
  const size_t bucket = host.planned.bucket;
  if (mels_from_ != MelsFrom::device) {
    const int64_t mels = options_.mel.mels, frames = frames_of(bucket);
    return finish(
        host, to_device(host.mels.narrow(0, 0, rows * mels * frames).view({rows, mels, frames})),
        host.mel_lengths);
  }
  const at::Tensor raw =
      to_device(host.samples.narrow(0, 0, rows * host.width).view({rows, host.width}));
  Waves waves = resampled(host, raw, options_.sample_rate), second;
  if (options_.second_rate > 0) second = resampled(host, raw, options_.second_rate);
  shape(host, waves, second);
  std::vector<int64_t> frames;
  for (const int64_t length : waves.lengths)
    frames.push_back(length > 0 ? mel_frames(length, options_.mel) : 0);
  RECORD_FUNCTION("tandem::log_mel", std::vector<c10::IValue>{});
  SpeechBatch made =
      finish(host, log_mel(waves, options_.mel, frames_of(bucket)), std::move(frames));
  if (options_.waves) {
    made.waves = filled_up(std::move(waves), bucket);
    if (options_.second_rate > 0) made.second = filled_up(std::move(second), bucket);
    made.batch.fields.push_back(made.waves.samples);
    made.batch.fields.push_back(length_tensor(made.waves.lengths));
  }
  return made;
}

// Clips of one rate are worked on together; most corpora have but one.
Waves SpeechBatches::resampled(const HostSpeech& host, const at::Tensor& raw, int to) const {
  const auto rows = static_cast<int64_t>(host.rows.size());
  std::map<int, std::vector<int64_t>> by_rate;
  for (int64_t row = 0; row < rows; ++row) {
    const Row& clip = host.rows[static_cast<size_t>(row)];
    by_rate[clip.clip < 0 ? host.rows.front().sample_rate : clip.sample_rate].push_back(row);
  }
  const int64_t widest = samples_of(host.planned.bucket, to);
  Waves waves{.lengths = std::vector<int64_t>(static_cast<size_t>(rows)), .sample_rate = to};
  for (const auto& [rate, members] : by_rate) {
    std::vector<int64_t> lengths;
    for (const int64_t row : members) lengths.push_back(host.rows[static_cast<size_t>(row)].frames);
    const bool all = static_cast<int64_t>(members.size()) == rows;
    const at::Tensor part = all ? raw : raw.index_select(0, length_tensor(members));
    RECORD_FUNCTION("tandem::resample", std::vector<c10::IValue>{});
    const Waves made = resample({part, std::move(lengths), rate}, to);
    for (size_t i = 0; i < members.size(); ++i)
      waves.lengths[static_cast<size_t>(members[i])] = made.lengths[i];
    if (all) {
      waves.samples = made.samples;
      break;
    }
    if (!waves.samples.defined()) waves.samples = at::zeros({rows, widest}, made.samples.options());
    const int64_t width = std::min(made.samples.size(1), widest);
    waves.samples.narrow(1, 0, width)
        .index_copy_(0, length_tensor(members), made.samples.narrow(1, 0, width));
  }
  return waves;
}

// Trimming, loudness, augmentation; of `second` the same places, where it is there.
void SpeechBatches::shape(const HostSpeech& host, Waves& waves, Waves& second) const {
  const bool both = second.samples.defined();
  if (options_.trim_top_db) {
    RECORD_FUNCTION("tandem::trim", std::vector<c10::IValue>{});
    trim_both(waves, second, *options_.trim_top_db);
  }
  if (options_.target_lufs) {
    RECORD_FUNCTION("tandem::loudness", std::vector<c10::IValue>{});
    waves = normalise_loudness(waves, *options_.target_lufs, loudest_peak);
    if (both) second = normalise_loudness(second, *options_.target_lufs, loudest_peak);
  }
  const auto epoch = static_cast<uint64_t>(host.planned.epoch);
  std::vector<uint64_t> ids;
  for (const Row& row : host.rows) ids.push_back(static_cast<uint64_t>(row.clip));
  if (options_.jitter_ms > 0) {
    RECORD_FUNCTION("tandem::jitter", std::vector<c10::IValue>{});
    const auto most = static_cast<uint64_t>(options_.jitter_ms * jitter_steps_a_second / 1000);
    std::vector<int64_t> steps;
    for (const uint64_t id : ids)
      steps.push_back(
          static_cast<int64_t>(counted_draw(options_.seed, "start", id, epoch) % (most + 1)));
    begin_later(waves, steps);
    if (both) begin_later(second, steps);
  }
  if (options_.pitch_semitones > 0) {
    RECORD_FUNCTION("tandem::pitch_shift", std::vector<c10::IValue>{});
    std::vector<double> semitones;
    for (const uint64_t id : ids) {
      const double draw = static_cast<double>(counted_draw(options_.seed, "pitch", id, epoch)) /
                          static_cast<double>(UINT64_MAX);
      // In steps of a quarter: each shift has a filter of its own, which is kept.
      semitones.push_back(std::round(4 * (2 * draw - 1) * options_.pitch_semitones) / 4);
    }
    waves = pitch_shift(waves, semitones);
    if (both) second = pitch_shift(second, semitones);
  }
  if (options_.noise_snr_db) {
    RECORD_FUNCTION("tandem::add_noise", std::vector<c10::IValue>{});
    waves = add_noise(waves, std::vector<double>(ids.size(), *options_.noise_snr_db), options_.seed,
                      ids, epoch);
  }
}

// To the width of the bucket.
Waves SpeechBatches::filled_up(Waves waves, size_t bucket) const {
  const int64_t width = samples_of(bucket, waves.sample_rate);
  if (waves.samples.size(1) == width) return waves;
  const int64_t kept = std::min(waves.samples.size(1), width);
  const at::Tensor filled = at::zeros({waves.samples.size(0), width}, waves.samples.options());
  filled.narrow(1, 0, kept).copy_(waves.samples.narrow(1, 0, kept));
  waves.samples = filled;
  for (int64_t& length : waves.lengths) length = std::min(length, width);
  return waves;
}

SpeechBatch SpeechBatches::finish(const HostSpeech& host, const at::Tensor& mels,
                                  std::vector<int64_t> frames) const {
  const auto rows = static_cast<int64_t>(host.rows.size());
  SpeechBatch made{.bucket = host.planned.bucket, .epoch = host.planned.epoch};
  Batch& batch = made.batch;
  batch.index = host.index;
  batch.rows = static_cast<int64_t>(host.planned.clips.size());
  for (int64_t row = 0; row < batch.rows; ++row)
    batch.clips.push_back(host.rows[static_cast<size_t>(row)].clip);
  const at::Tensor tokens =
      host.tokens.narrow(0, 0, rows * host.token_width).view({rows, host.token_width});
  const at::Tensor token_lengths = host.token_lengths.narrow(0, 0, rows);
  batch.fields = {to_device(tokens), to_device(token_lengths), mels, length_tensor(frames)};
  const int64_t* lengths = token_lengths.const_data_ptr<int64_t>();
  made.token_lengths.assign(lengths, lengths + rows);
  made.mel_lengths = std::move(frames);
  return made;
}

uint64_t mel_recipe(const SpeechOptions& options) {
  uint64_t recipe = hash_text("mels 1");
  const auto add = [&](double value) {
    recipe = mix_bits(recipe ^ std::bit_cast<uint64_t>(value));
  };
  const MelOptions& mel = options.mel;
  for (const double value :
       {double(options.sample_rate), double(mel.n_fft), double(mel.hop), double(mel.window_length),
        double(mel.window), double(mel.mels), mel.f_min, mel.f_max, double(mel.power),
        double(mel.scale), double(mel.area_norm), mel.clamp, mel.add, mel.preemphasis,
        double(mel.standardise), options.trim_top_db.value_or(0), options.target_lufs.value_or(1)})
    add(value);
  return recipe;
}

}  // namespace tandem
