#include "data/feed/speech_feed.h"

#include <fmt/format.h>

#include "tandem/config.h"
#include "tandem/error.h"
#include "util/log.h"

namespace tandem {
namespace {

BatchOrder order_of(const SpeechCorpus& corpus, const DataConfig& config, uint64_t seed,
                    bool shuffle) {
  std::vector<Bucket> buckets =
      make_buckets(corpus.lengths(), {.most = config.buckets,
                                      .batch_size = config.batch_size,
                                      .batch_seconds = config.batch_seconds.value_or(0)});
  log_debug("{} clips in {} buckets, {:.1f} % padding", corpus.index().size(), buckets.size(),
            100 * padding_share(buckets, corpus.lengths()));
  return {std::move(buckets), {.seed = seed, .shuffle = shuffle}};
}

SpeechOptions with_host(SpeechOptions options, bool on_host) {
  options.on_host = on_host;
  return options;
}

}  // namespace

SpeechOptions speech_options(const DataConfig& config, uint64_t seed) {
  SpeechOptions options{.sample_rate = static_cast<int>(config.sample_rate),
                        .trim_top_db = config.trim_top_db,
                        .target_lufs = config.target_loudness_lufs,
                        .noise_snr_db = config.noise_snr_db,
                        .pitch_semitones = config.pitch_shift_semitones,
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
    say("⚠️  Native data loading is off: every file goes through the general decoder, which is "
        "slower");
  }
}

SpeechFeed::SpeechFeed(const std::string& path, const DataConfig& config, uint64_t seed,
                       const std::string& bad_list, bool on_host, bool shuffle)
    : corpus(SpeechCorpus::open(path, {.vocabulary = config.tokenizer.value_or(""),
                                       .language = config.language.value_or(""),
                                       .workers = static_cast<int>(config.num_workers)})),
      order(order_of(corpus, config, seed, shuffle)),
      bad(bad_list, corpus.index().size(),
          {.warn_share = config.warn_bad_share, .stop_share = config.max_bad_share}),
      batches(corpus, order, bad, with_host(speech_options(config, seed), on_host)) {}

}  // namespace tandem
