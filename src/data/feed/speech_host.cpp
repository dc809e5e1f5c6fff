#include "data/feed/speech_host.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "data/corpus/clip_sound.h"
#include "data/feed/clip_shape.h"
#include "tandem/error.h"
#include "util/log.h"

namespace tandem {
namespace {

void reserve(at::Tensor& buffer, int64_t count, at::ScalarType type, bool pinned) {
  if (buffer.defined() && buffer.numel() >= count) return;
  buffer = at::empty({count}, at::TensorOptions().dtype(type).pinned_memory(pinned));
}

// The index knows size and time of the file; one that is another now may be anything. False: there
// is no file, and opening it says why.
bool is_there_unchanged(const ClipView& clip, const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return false;
  const int64_t modified = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  const bool whole_file = clip.offset == 0 && clip.part == 0;
  if (modified == clip.modified && (!whole_file || status.st_size == clip.bytes)) return true;
  throw AudioError(
      AudioFault::changed,
      fmt::format("`{}` is not the file that was indexed: its size or time changed", path));
}

}  // namespace

SpeechBatches::SpeechBatches(const SpeechCorpus& corpus, const BatchOrder& order, BadFiles& bad,
                             const SpeechOptions& options)
    : corpus_(corpus), order_(order), bad_(bad), options_(options) {
  for (const Bucket& bucket : order.buckets()) {
    int64_t widest = 1;
    for (const int64_t clip : bucket.clips) widest = std::max(widest, corpus.index()[clip].frames);
    widest_.push_back(widest);
  }
  recipe_ = mel_recipe(options);
  mels_from_ = choose_source();
}

SpeechBatches::MelsFrom SpeechBatches::choose_source() const {
  // Augmentation makes other mels each time and works on whole batches; samples are not in the
  // cache.
  if (options_.waves || options_.augments()) return MelsFrom::device;
  const MelsFrom otherwise = options_.on_host ? MelsFrom::host_threads : MelsFrom::device;
  if (!options_.cache) return otherwise;
  const ClipIndex& index = corpus_.index();
  int64_t held = 0;
  for (int64_t row = 0; row < index.size(); ++row)
    held += options_.cache->find(clip_cache_key(index[row], recipe_)).has_value();
  if (held == index.size()) return MelsFrom::cache;
  log_info("the cache holds the mels of {} of {} clips: they are computed", held, index.size());
  return otherwise;
}

std::unique_ptr<HostBatch> SpeechBatches::make_host_batch(bool pinned) {
  return std::make_unique<HostSpeech>(pinned);
}

void SpeechBatches::plan(HostBatch& base, int64_t index) {
  auto& host = static_cast<HostSpeech&>(base);
  host.index = index;
  host.planned = order_.batch(index);
  host.tasks = static_cast<int>(host.planned.clips.size());
  const Bucket& bucket = order_.buckets()[host.planned.bucket];
  host.rows.assign(static_cast<size_t>(bucket.rows), {});
  host.width = widest_[host.planned.bucket];
  host.token_width = bucket.tokens;
  const int64_t empty = bucket.rows - host.tasks;
  if (mels_from_ != MelsFrom::device) {
    const int64_t row = options_.mel.mels * frames_of(host.planned.bucket);
    reserve(host.mels, bucket.rows * row, at::kFloat, host.pinned);
    host.mels.narrow(0, host.tasks * row, empty * row).zero_();
    host.mel_lengths.assign(static_cast<size_t>(bucket.rows), 0);
  } else {
    reserve(host.samples, bucket.rows * host.width, at::kFloat, host.pinned);
    host.samples.narrow(0, host.tasks * host.width, empty * host.width).zero_();
  }
  reserve(host.tokens, bucket.rows * host.token_width, at::kLong, host.pinned);
  reserve(host.token_lengths, bucket.rows, at::kLong, host.pinned);
  host.token_lengths.narrow(0, 0, bucket.rows).zero_();
  host.tokens.narrow(0, 0, bucket.rows * host.token_width).zero_();
}

void SpeechBatches::run_task(HostBatch& base, int task) {
  auto& host = static_cast<HostSpeech&>(base);
  if (load_clip(host, task, host.planned.clips[static_cast<size_t>(task)])) return;
  constexpr int64_t attempts = 32;
  for (int64_t attempt = 0; attempt < attempts; ++attempt) {
    if (load_clip(host, task, order_.replacement(host.planned, task, attempt))) return;
  }
  throw Error(
      ErrorKind::data,
      fmt::format("no clip of {:g} s or less can be used: {} were tried in place of `{}` ({})",
                  order_.buckets()[host.planned.bucket].seconds, attempts,
                  corpus_.index().full_path(host.planned.clips[static_cast<size_t>(task)]),
                  bad_.summary()))
      .hint(bad_.advice());
}

bool SpeechBatches::load_clip(HostSpeech& host, int task, int64_t clip) {
  const ClipView view = corpus_.index()[clip];
  const std::string path = corpus_.index().full_path(clip);
  bad_.note_tried(clip);
  std::vector<int32_t> ids;
  try {
    ids = corpus_.ids(clip);
  } catch (const Error& error) {
    bad_.add(clip, path, "no text", error.what());
    return false;
  }
  try {
    load_sound(host, task, clip);
  } catch (const AudioError& error) {
    bad_.add(clip, path, to_string(error.fault()), error.what());
    return false;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) throw;
    bad_.add(clip, path, "damaged cache", error.what());
    return false;
  }
  auto* tokens = host.tokens.mutable_data_ptr<int64_t>() + task * host.token_width;
  const auto count = std::min<size_t>(ids.size(), static_cast<size_t>(host.token_width));
  std::copy_n(ids.begin(), count, tokens);
  host.token_lengths.mutable_data_ptr<int64_t>()[task] = static_cast<int64_t>(count);
  host.rows[static_cast<size_t>(task)] = {clip, view.frames, view.sample_rate};
  return true;
}

void SpeechBatches::load_sound(HostSpeech& host, int task, int64_t clip) {
  if (mels_from_ == MelsFrom::cache) return read_mels(host, task, clip);
  if (mels_from_ == MelsFrom::host_threads) return make_mels(host, task, clip);
  float* samples = host.samples.mutable_data_ptr<float>() + task * host.width;
  read_samples(clip, samples);
  std::fill(samples + corpus_.index()[clip].frames, samples + host.width, 0.0f);
}

int64_t SpeechBatches::clip_of(const HostBatch& base, int row) const {
  return static_cast<const HostSpeech&>(base).rows[static_cast<size_t>(row)].clip;
}

size_t SpeechBatches::bucket_of(const HostBatch& base) const {
  return static_cast<const HostSpeech&>(base).planned.bucket;
}

// Where the mels of a row go, [mels, F]; zero beyond its own frames.
float* SpeechBatches::mel_row(HostSpeech& host, int task, int64_t frames) const {
  const int64_t width = frames_of(host.planned.bucket);
  float* row = host.mels.mutable_data_ptr<float>() + int64_t{task} * options_.mel.mels * width;
  for (int64_t mel = 0; mel < options_.mel.mels; ++mel)
    std::fill(row + mel * width + frames, row + (mel + 1) * width, 0.0f);
  host.mel_lengths[static_cast<size_t>(task)] = frames;
  return row;
}

void SpeechBatches::read_mels(HostSpeech& host, int task, int64_t clip) const {
  const auto entry = options_.cache->find(clip_cache_key(corpus_.index()[clip], recipe_));
  const int64_t width = frames_of(host.planned.bucket);
  if (!entry || entry->rows != options_.mel.mels || entry->columns > width)
    throw Error(ErrorKind::internal, "the cache lost the mels of a clip");
  options_.cache->read(*entry, mel_row(host, task, entry->columns), width);
}

// What `prepare` does for a batch, for one clip while it is in this core's cache.
void SpeechBatches::make_mels(HostSpeech& host, int task, int64_t row) {
  const ClipView clip = corpus_.index()[row];
  thread_local std::vector<float> raw, resampled;
  raw.resize(static_cast<size_t>(clip.frames));
  read_samples(row, raw.data());
  const ShapedClip shaped = shape_clip(raw, clip.sample_rate, resampled, options_);
  const int64_t width = frames_of(host.planned.bucket);
  const int64_t frames = std::min(width, mel_frames(shaped.count, options_.mel));
  log_mel_clip(shaped.samples, shaped.count, options_.mel, frames, mel_row(host, task, frames),
               width);
}

void SpeechBatches::read_samples(int64_t row, float* out) {
  const ClipView clip = corpus_.index()[row];
  const std::string path = corpus_.index().full_path(row);
  const bool there = is_there_unchanged(clip, path);
  if (there && options_.kept && options_.kept->copy(row, out)) return;
  const auto file = open_clip(corpus_.index(), row, options_.native);
  if (file->info().native) {
    ++native_reads_;
  } else {
    note_general(file->info(), path);
  }
  file->read_mono(clip.first_frame, clip.frames, out);
  if (options_.kept && !file->info().native) options_.kept->keep(row, out, clip.frames);
}

// Said once a format: it is slower, and the user may want to know which files are the cause.
void SpeechBatches::note_general(const AudioInfo& info, const std::string& path) {
  static std::mutex mutex;
  static std::set<std::string> told;
  if (general_reads_++ > 0 || !options_.native) return;
  const std::lock_guard lock(mutex);
  if (!told.insert(info.format).second) return;
  log_info("`{}` ({}) and others like it are read by the general decoder, which is slower", path,
           info.format);
}

}  // namespace tandem
