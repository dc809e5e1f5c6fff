#include "data/feed/speech_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "audio/signal/resample.h"
#include "data/corpus/drop_reason.h"
#include "data/feed/feature_cache.h"
#include "tandem/config.h"
#include "tandem/error.h"
#include "util/log.h"

namespace tandem {
namespace {

SpeechOptions sound_of(const DataConfig& config, const SpeechFeedOptions& options) {
  SpeechOptions sound = options.sound ? *options.sound : speech_options(config, options.seed);
  sound.on_host = options.on_host;
  return sound;
}

// Rows within bounds. `left_out` is called with what lies outside.
using LeftOut =
    std::function<void(int64_t row, const std::string& reason, const std::string& sentence)>;
std::vector<int64_t> rows_within(const SpeechCorpus& corpus, const ClipBounds& bounds,
                                 int sample_rate, const LeftOut& left_out) {
  const ClipIndex& index = corpus.index();
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < index.size(); ++row) {
    const ClipView clip = index[row];
    const int64_t samples = resampled_length(clip.frames, clip.sample_rate, sample_rate);
    const int64_t tokens = corpus.lengths()[static_cast<size_t>(row)].tokens;
    if (bounds.most_samples > 0 && samples > bounds.most_samples) {
      left_out(
          row, to_string(DropReason::too_long),
          fmt::format("`{}` lasts {:.2f} s; the model takes {:.2f} s at most", index.full_path(row),
                      clip.seconds(), static_cast<double>(bounds.most_samples) / sample_rate));
    } else if (bounds.most_tokens > 0 && tokens > bounds.most_tokens) {
      left_out(row, to_string(DropReason::text_too_long),
               fmt::format("the text of `{}` has {} tokens; the model takes {} at most",
                           index.full_path(row), tokens, bounds.most_tokens));
    } else {
      rows.push_back(row);
    }
  }
  return rows;
}

std::vector<int64_t> chosen_rows(const SpeechCorpus& corpus, const SpeechFeedOptions& options,
                                 int sample_rate, const LeftOut& left_out) {
  return rows_of_side(corpus.index(), rows_within(corpus, options.bounds, sample_rate, left_out),
                      options.side, options.validation_share);
}

// Buckets of some rows, whose shapes the model can take.
std::vector<Bucket> buckets_of(const SpeechCorpus& corpus, const std::vector<int64_t>& rows,
                               const DataConfig& config, const ClipBounds& bounds,
                               int sample_rate) {
  std::vector<ClipLength> lengths;
  for (const int64_t row : rows) lengths.push_back(corpus.lengths()[static_cast<size_t>(row)]);
  std::vector<Bucket> buckets =
      make_buckets(lengths, {.most = config.buckets,
                             .batch_size = config.batch_size,
                             .batch_seconds = config.batch_seconds.value_or(0)});
  log_debug("{} clips in {} buckets, {:.1f} % padding", rows.size(), buckets.size(),
            100 * padding_share(buckets, lengths));
  for (Bucket& bucket : buckets) {
    for (int64_t& clip : bucket.clips) clip = rows[static_cast<size_t>(clip)];
    if (bounds.most_tokens > 0) bucket.tokens = std::min(bucket.tokens, bounds.most_tokens);
    if (bounds.most_samples > 0)
      bucket.seconds =
          std::min(bucket.seconds, static_cast<double>(bounds.most_samples) / sample_rate);
  }
  return buckets;
}

// With a batch's size in seconds, long clips are few. How many was told by lengths in steps of half
// a second, which a bucket cut to what the model takes no longer shows.
void check_replicas(const std::vector<Bucket>& buckets, const DataConfig& config,
                    int64_t replicas) {
  for (const Bucket& bucket : buckets) {
    if (bucket.rows >= replicas) continue;
    throw Error(
        ErrorKind::config,
        fmt::format("data.batch_seconds is {:g}: a batch of clips of {:.1f} s has {}, fewer "
                    "than the {} replicas that share it",
                    config.batch_seconds.value_or(0), bucket.seconds, bucket.rows, replicas))
        .hint(fmt::format(
            "use data.batch_seconds={:.0f} or more",
            std::ceil(std::ceil(bucket.seconds * 2) / 2 * static_cast<double>(replicas))));
  }
}

BatchOrder order_of(const SpeechCorpus& corpus, BadFiles& bad, const DataConfig& config,
                    const SpeechFeedOptions& options) {
  const int sample_rate = sound_of(config, options).sample_rate;
  int64_t left_out = 0;
  const std::vector<int64_t> rows =
      chosen_rows(corpus, options, sample_rate,
                  [&](int64_t row, const std::string& reason, const std::string& sentence) {
                    ++left_out;
                    if (options.side != Side::validation)
                      bad.leave_out(row, corpus.index().full_path(row), reason, sentence);
                  });
  if (left_out > 0 && left_out == corpus.index().size()) {
    throw Error(ErrorKind::data, fmt::format("the model can take none of the {} clips ({})",
                                             left_out, bad.summary_of_left_out()))
        .hint("cut the recordings into sentences, or choose a model with more places");
  }
  if (left_out > 0 && options.side != Side::validation) {
    std::string most;
    if (options.bounds.most_samples > 0)
      most =
          fmt::format("{:.2f} s", static_cast<double>(options.bounds.most_samples) / sample_rate);
    if (options.bounds.most_tokens > 0)
      most += fmt::format("{}{} tokens", most.empty() ? "" : " and ", options.bounds.most_tokens);
    log_info("{} of {} clips are left out ({}): the model takes {} at most{}", left_out,
             corpus.index().size(), bad.summary_of_left_out(), most,
             options.bad_list.empty() || options.list_waits
                 ? ""
                 : fmt::format("; they are listed in `{}`", options.bad_list));
  }
  std::vector<Bucket> buckets = buckets_of(corpus, rows, config, options.bounds, sample_rate);
  check_replicas(buckets, config, options.replicas);
  return {std::move(buckets), {.seed = options.seed, .shuffle = options.shuffle}};
}

SpeechCorpus open_corpus(const std::string& path, const DataConfig& config) {
  return SpeechCorpus::open(path, {.vocabulary = config.tokenizer.value_or(""),
                                   .language = config.language.value_or(""),
                                   .workers = static_cast<int>(config.num_workers)});
}

// Mels that `tandem prepare --cache mels` made; whether they are those the feed would make is found
// out clip by clip.
std::optional<ClipCache> open_cache(const SpeechCorpus& corpus) {
  const std::string path = corpus.path().empty() ? "" : mel_cache_path(corpus.path());
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return std::nullopt;
  try {
    return ClipCache::open(path);
  } catch (const Error& error) {
    log_warning("{}; mels are computed", error.what());
    return std::nullopt;
  }
}

SpeechOptions with_what_was_made(SpeechOptions sound, const std::optional<ClipCache>& cache,
                                 KeptSounds& kept) {
  if (cache) sound.cache = &*cache;
  sound.kept = &kept;
  return sound;
}

const std::string& train_data(const DataConfig& config) {
  if (config.train_data) return *config.train_data;
  throw Error(ErrorKind::config, "data.train_data is not set: training needs a corpus")
      .hint("give a folder, a table or an index with --train-data");
}

}  // namespace

SpeechOptions speech_options(const DataConfig& config, uint64_t seed) {
  SpeechOptions options{.sample_rate = static_cast<int>(config.sample_rate),
                        .trim_top_db = config.trim_top_db,
                        .target_lufs = config.target_loudness_lufs,
                        .noise_snr_db = config.noise_snr_db,
                        .pitch_semitones = config.pitch_shift_semitones,
                        .jitter_ms = config.start_jitter_ms,
                        .native = config.use_native_loading,
                        .seed = seed};
  options.mel = find_mel(config.mel).value();  // the table of settings knows the same names
  if (options.mel.sample_rate != options.sample_rate) {
    throw Error(ErrorKind::config,
                fmt::format("data.mel `{}` is made for {} Hz, data.sample_rate is {}", config.mel,
                            options.mel.sample_rate, options.sample_rate))
        .hint(fmt::format("use data.sample_rate={}", options.mel.sample_rate));
  }
  return options;
}

void announce_loading(const DataConfig& config) {
  if (config.use_native_loading) {
    say("✅ SUCCESS: Using native data loading (GPU-optimized)");
  } else {
    complain(
        {"⚠️  Native data loading is off: every file goes through the general decoder, which "
         "is slower"});
  }
}

SpeechFeed::SpeechFeed(SpeechCorpus opened, const DataConfig& config,
                       const SpeechFeedOptions& options)
    : corpus(std::move(opened)),
      bad(options.bad_list, corpus.index().size(),
          {.warn_share = config.warn_bad_share, .stop_share = config.max_bad_share},
          options.list_waits),
      order(order_of(corpus, bad, config, options)),
      cache(open_cache(corpus)),
      kept(corpus.index().size(), kept_sound_bytes(config.decoded_memory)),
      batches(corpus, order, bad, with_what_was_made(sound_of(config, options), cache, kept)) {}

SpeechFeed::SpeechFeed(const std::string& path, const DataConfig& config,
                       const SpeechFeedOptions& options)
    : SpeechFeed(open_corpus(path, config), config, options) {}

SpeechFeed::SpeechFeed(const std::string& path, const DataConfig& config, uint64_t seed,
                       const std::string& bad_list, bool on_host, bool shuffle)
    : SpeechFeed(path, config,
                 {.seed = seed, .bad_list = bad_list, .on_host = on_host, .shuffle = shuffle}) {}

std::string SpeechFeed::words() const {
  return fmt::format("clips={} batches={} buckets={}", order.clips(), order.batches_an_epoch(),
                     order.buckets().size());
}

std::string SpeechFeed::reading_words() const {
  const int64_t general = batches.general_reads();
  if (general == 0 || !batches.options().native) return "";
  return fmt::format("{} clips were read by the native reader, {} by the general decoder",
                     batches.native_reads(), general);
}

std::vector<std::string> SpeechFeed::clips_of(int64_t batch) const {
  std::vector<std::string> files;
  for (const int64_t clip : order.batch(batch).clips)
    files.push_back(corpus.index().full_path(clip));
  return files;
}

std::unique_ptr<SpeechFeed> open_training(const DataConfig& config, SpeechFeedOptions options) {
  options.side = config.val_data ? Side::all : Side::training;
  options.validation_share = config.validation_share;
  auto feed = std::make_unique<SpeechFeed>(train_data(config), config, options);
  if (feed->corpus.index().size() == 1)
    throw Error(ErrorKind::data,
                fmt::format("`{}` has one clip; a training needs two at least", train_data(config)))
        .hint("cut the recording into sentences; a voice needs minutes of them");
  return feed;
}

std::unique_ptr<SpeechFeed> open_validation(const DataConfig& config, SpeechFeedOptions options) {
  options.shuffle = false;
  options.side = config.val_data ? Side::all : Side::validation;
  options.validation_share = config.validation_share;
  SpeechOptions as_it_is = sound_of(config, options);  // judged by clips that nothing was done to
  as_it_is.noise_snr_db.reset();
  as_it_is.pitch_semitones = as_it_is.jitter_ms = 0;
  options.sound = as_it_is;
  if (config.val_data) return std::make_unique<SpeechFeed>(*config.val_data, config, options);
  SpeechCorpus corpus = open_corpus(train_data(config), config);
  const auto ignore = [](int64_t, const std::string&, const std::string&) {};
  if (chosen_rows(corpus, options, sound_of(config, options).sample_rate, ignore).empty())
    return nullptr;
  return std::make_unique<SpeechFeed>(std::move(corpus), config, options);
}

}  // namespace tandem
