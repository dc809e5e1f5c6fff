#include "train/batches/gpt_batches.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>

#include "audio/signal/ragged.h"

namespace tandem {
namespace {

// Coqui counts the slice in frames of the conditioning mels, the targets in codes.
constexpr int64_t coqui_hop = 256;

VoiceSliceOptions slicing_of(const GptBatchOptions& options, int rate) {
  return {.shortest = std::llround(options.shortest_slice * rate),
          .longest = std::llround(options.longest_slice * rate),
          .fixed = options.validation,
          .seed = options.seed};
}

}  // namespace

struct GptBatches::Host final : HostBatch {
  std::unique_ptr<HostBatch> speech;
  bool pinned = false;
  at::Tensor codes;  // of the cache: flat [rows * N] int64; undefined: there is none
};

struct GptBatches::Slices {
  std::vector<VoiceSlice> places;  // in each clip
  std::vector<size_t> from;        // the row whose slice a row has
  at::Tensor mels;                 // [B, mels, F]
  std::vector<int64_t> frames;
};

GptBatches::GptBatches(SpeechFeed& speech, const DvaeEncoder& dvae, const GptBatchOptions& options)
    : speech_(speech),
      dvae_(dvae),
      options_(options),
      slicing_(slicing_of(options, speech.batches.options().sample_rate)),
      codes_(speech, dvae, options.code_stride, options.like_coqui) {
  const ClipIndex& index = speech.corpus.index();
  for (int64_t clip = 0; clip < index.size() && !names_speakers_; ++clip)
    names_speakers_ = !index[clip].speaker.empty();
}

std::unique_ptr<HostBatch> GptBatches::make_host_batch(bool pinned) {
  auto host = std::make_unique<Host>();
  host->speech = speech_.batches.make_host_batch(pinned);
  host->pinned = pinned;
  return host;
}

void GptBatches::plan(HostBatch& base, int64_t index) {
  auto& host = static_cast<Host&>(base);
  speech_.batches.plan(*host.speech, index);
  host.index = index;
  host.tasks = host.speech->tasks;
  if (!codes_.cached()) return;
  const size_t bucket = speech_.batches.bucket_of(*host.speech);
  const int64_t count = speech_.order.buckets()[bucket].rows * codes_.width_of(bucket);
  if (!host.codes.defined() || host.codes.numel() < count)
    host.codes =
        at::empty({count}, at::TensorOptions().dtype(at::kLong).pinned_memory(host.pinned));
  host.codes.zero_();
}

void GptBatches::run_task(HostBatch& base, int task) {
  auto& host = static_cast<Host&>(base);
  speech_.batches.run_task(*host.speech, task);
  if (!codes_.cached()) return;
  const int64_t clip = speech_.batches.clip_of(*host.speech, task);
  const int64_t width = codes_.width_of(speech_.batches.bucket_of(*host.speech));
  codes_.read(clip, host.codes.mutable_data_ptr<int64_t>() + task * width, width);
}

// Samples of the widest slice of a bucket.
int64_t GptBatches::slice_width(size_t bucket) const {
  if (options_.like_coqui) return slicing_.longest;
  return longest_voice_slice(speech_.batches.samples_of(bucket), slicing_);
}

std::vector<int64_t> GptBatches::largest_fields() const {
  std::vector<int64_t> largest(gpt_fields);
  const MelOptions mel = mel_xtts_conditioning();
  for (size_t bucket = 0; bucket < speech_.order.buckets().size(); ++bucket) {
    const int64_t rows = speech_.order.buckets()[bucket].rows;
    const auto grow = [&](size_t field, int64_t a_row) {
      largest[field] = std::max(largest[field], rows * a_row);
    };
    grow(gpt_text, speech_.order.buckets()[bucket].tokens);
    grow(gpt_codes, codes_.width_of(bucket));
    grow(gpt_conditioning, mel.mels * mel_frames(slice_width(bucket), mel));
    for (const size_t lengths : {gpt_text_lengths, gpt_code_lengths, gpt_conditioning_lengths})
      grow(lengths, 1);
    for (const size_t pairs : {gpt_slice, gpt_whole}) grow(pairs, 2);
  }
  return largest;
}

Batch GptBatches::prepare(const HostBatch& host) {
  SpeechBatch speech;
  return prepare(host, speech);
}

Batch GptBatches::prepare(const HostBatch& base, SpeechBatch& speech) {
  const auto& host = static_cast<const Host&>(base);
  speech = speech_.batches.make(*host.speech);
  const auto rows = static_cast<int64_t>(speech.waves.lengths.size());
  const at::Device device = speech.waves.samples.device();
  std::vector<int64_t> code_lengths;
  for (const int64_t samples : speech.waves.lengths)
    code_lengths.push_back(codes_.codes_of(samples));

  Batch batch{.index = speech.batch.index, .rows = speech.batch.rows, .clips = speech.batch.clips};
  float text_targets = 0, audio_targets = 0;
  const Slices slices = cut_slices(speech);
  const std::vector<int64_t> masked = masked_targets(speech, slices, code_lengths);
  for (size_t row = 0; row < static_cast<size_t>(batch.rows); ++row) {
    const bool taught = speech.token_lengths[row] > 0 && code_lengths[row] > 0;
    const int64_t targets = taught ? code_lengths[row] + stop_targets : 0;
    const int64_t first = std::min(masked[2 * row], targets);
    const int64_t hidden = std::min(masked[2 * row + 1], targets) - first;
    text_targets += taught ? static_cast<float>(speech.token_lengths[row] + 1) : 0;
    audio_targets += static_cast<float>(targets - hidden);
    batch.sizes.push_back(taught ? speech.token_lengths[row] + 2 + 1 + targets : 0);
  }
  const at::Tensor whole =
      at::tensor({std::max(1.0f, text_targets), std::max(1.0f, audio_targets)}).repeat({rows, 1});
  batch.fields = {speech.batch.fields[speech_tokens],
                  speech.batch.fields[speech_token_lengths],
                  codes_of(host, speech, code_lengths),
                  row_lengths(code_lengths, device),
                  slices.mels,
                  row_lengths(slices.frames, device),
                  row_lengths(masked, device).view({rows, 2}),
                  whole.to(device, /*non_blocking=*/true)};
  return batch;
}

// Copied once: a copy from the host would wait.
const at::Tensor& GptBatches::stats_on(const at::Device& device) {
  const at::Tensor& stats = dvae_.mel_stats;
  if (!stats.defined() || (stats_.defined() && stats_.device() == device)) return stats_;
  stats_ = stats.to(device, at::kFloat);
  return stats_;
}

GptBatches::Slices GptBatches::cut_slices(const SpeechBatch& speech) {
  RECORD_FUNCTION("tandem::voice_slices", std::vector<c10::IValue>{});
  const size_t rows = speech.waves.lengths.size();
  Slices slices;
  std::vector<int64_t> starts, lengths;
  for (size_t row = 0; row < rows; ++row) {
    const bool filled = row < speech.batch.clips.size();
    const auto clip = static_cast<uint64_t>(filled ? speech.batch.clips[row] : 0);
    slices.places.push_back(draw_voice_slice(filled ? speech.waves.lengths[row] : 0, slicing_, clip,
                                             static_cast<uint64_t>(speech.epoch)));
    starts.push_back(slices.places.back().start);
    lengths.push_back(slices.places.back().length);
  }
  const MelOptions mel = mel_xtts_conditioning();
  const int64_t width = slice_width(speech.bucket);
  Waves waves = cut(speech.waves, starts, lengths, width);
  if (options_.like_coqui) {
    for (int64_t& length : waves.lengths) length = length > 0 ? width : 0;
  }
  slices.from = voices_from(speech);
  for (const size_t row : slices.from) slices.frames.push_back(mel_frames(waves.lengths[row], mel));
  slices.mels = log_mel(waves, mel, mel_frames(width, mel), stats_on(waves.samples.device()));
  if (options_.other_clip) {
    const std::vector<int64_t> from(slices.from.begin(), slices.from.end());
    slices.mels = slices.mels.index_select(0, row_lengths(from, slices.mels.device()));
  }
  return slices;
}

std::vector<size_t> GptBatches::voices_from(const SpeechBatch& speech) const {
  const std::vector<int64_t>& clips = speech.batch.clips;
  std::vector<size_t> from;
  if (options_.other_clip) {
    std::vector<std::string_view> speakers;
    for (size_t row = 0; row < clips.size(); ++row) {
      const bool heard = speech.waves.lengths[row] > 0;
      const auto named = speech_.corpus.index()[clips[row]].speaker;
      speakers.push_back(!heard ? "" : names_speakers_ ? named : "everyone");
    }
    from = voice_rows(clips, speakers);
  }
  while (from.size() < speech.waves.lengths.size()) from.push_back(from.size());
  return from;
}

at::Tensor GptBatches::codes_of(const Host& host, const SpeechBatch& speech,
                                const std::vector<int64_t>& lengths) {
  const auto rows = static_cast<int64_t>(lengths.size());
  const int64_t width = codes_.width_of(speech.bucket);
  const at::Device device = speech.waves.samples.device();
  const at::Tensor within = within_rows(lengths, width, device);
  if (!codes_.cached()) return codes_.encode(speech) * within;
  const at::Tensor cached = host.codes.narrow(0, 0, rows * width).view({rows, width});
  return cached.to(device, /*non_blocking=*/true) * within;
}

// First and one behind the last of each row, flat.
std::vector<int64_t> GptBatches::masked_targets(const SpeechBatch& speech, const Slices& slices,
                                                const std::vector<int64_t>& codes) const {
  std::vector<int64_t> masked(2 * codes.size(), 0);
  if (!options_.masks_slice || speech.batch.rows == 0) return masked;
  if (options_.like_coqui) {
    if (options_.validation) return masked;
    const auto last = static_cast<size_t>(speech.batch.rows) - 1;
    masked[2 * last] = slices.places[last].start / coqui_hop;
    masked[2 * last + 1] = slices.places[last].end() / coqui_hop;
    return masked;
  }
  for (size_t row = 0; row < static_cast<size_t>(speech.batch.rows); ++row) {
    if (slices.from[row] != row) continue;
    masked[2 * row] = slices.places[row].start / options_.code_stride;
    masked[2 * row + 1] = std::min(codes[row], codes_.codes_of(slices.places[row].end()));
  }
  return masked;
}

}  // namespace tandem
