#include "observe/data_bench.h"

#include <functional>

#include "audio/signal/resample.h"
#include "data/corpus/clip_sound.h"
#include "data/feed/speech_feed.h"
#include "device/device_scope.h"
#include "device/registry.h"
#include "tandem/error.h"
#include "util/clock.h"

namespace tandem {
namespace {

// Clips evenly spread over the corpus, read once to warm the page cache.
std::vector<int64_t> some_clips(const SpeechCorpus& corpus) {
  const int64_t count = std::min<int64_t>(corpus.index().size(), 200);
  std::vector<int64_t> clips;
  for (int64_t i = 0; i < count; ++i) clips.push_back(i * corpus.index().size() / count);
  return clips;
}

double rate_of(size_t count, const std::function<void(size_t)>& work) {
  for (size_t i = 0; i < std::min<size_t>(8, count); ++i) work(i);
  const auto start = Clock::now();
  size_t done = 0;
  do {
    for (size_t i = 0; i < count; ++i) work(i);
    done += count;
  } while (seconds_since(start) < 0.3);
  return static_cast<double>(done) / seconds_since(start);
}

std::vector<StageRate> stage_rates(const SpeechCorpus& corpus, const SpeechOptions& options) {
  const std::vector<int64_t> clips = some_clips(corpus);
  std::vector<std::vector<float>> raw(clips.size()), ready(clips.size());
  const auto decode = [&](size_t i) {
    const ClipView clip = corpus.index()[clips[i]];
    const auto file = open_clip(corpus.index(), clips[i], options.native);
    raw[i].resize(static_cast<size_t>(clip.frames));
    file->read_mono(clip.first_frame, clip.frames, raw[i].data());
  };
  const auto resample = [&](size_t i) {
    const int rate = corpus.index()[clips[i]].sample_rate;
    const auto samples = static_cast<int64_t>(raw[i].size());
    ready[i].resize(static_cast<size_t>(resampled_length(samples, rate, options.sample_rate)));
    resample_clip(raw[i].data(), samples, rate, options.sample_rate, ready[i].data());
  };
  std::vector<float> mels;
  const auto mel = [&](size_t i) {
    const auto samples = static_cast<int64_t>(ready[i].size());
    const int64_t frames = mel_frames(samples, options.mel);
    mels.resize(static_cast<size_t>(frames * options.mel.mels));
    log_mel_clip(ready[i].data(), samples, options.mel, frames, mels.data(), frames);
  };
  std::vector<StageRate> rates;
  rates.push_back({"decode", rate_of(clips.size(), decode)});
  rates.push_back({"tokenize", rate_of(clips.size(), [&](size_t i) { corpus.ids(clips[i]); })});
  bool rates_differ = false;
  for (const int64_t clip : clips)
    rates_differ = rates_differ || corpus.index()[clip].sample_rate != options.sample_rate;
  for (size_t i = 0; i < clips.size(); ++i) resample(i);
  if (rates_differ) rates.push_back({"resample", rate_of(clips.size(), resample)});
  rates.push_back({"mel", rate_of(clips.size(), mel)});
  return rates;
}

}  // namespace

DataBench bench_data(const DataBenchOptions& options) {
  const auto opened = Clock::now();
  DeviceRegistry& registry = DeviceRegistry::get();
  LogicalDevice& data = registry.find(options.data_device);
  LogicalDevice& model = registry.find(options.model_device);
  DataConfig settings = options.settings;
  // What is measured is the decoding, not a copy of what was decoded before.
  if (!settings.decoded_memory) settings.decoded_memory = 0;
  SpeechFeed speech(options.data, settings, options.seed, "", data.kind() == DeviceKind::cpu);
  FeedOptions feeding = feed_options(options.settings);
  feeding.end_batch = INT64_MAX;
  DataBench bench{.device = options.data_device};
  const auto& lengths = speech.corpus.lengths();
  {
    Feed feed(speech.batches, data, {&model}, feeding);
    double sound = 0;
    Clock::time_point start = Clock::now();
    bool warm = false;
    for (int64_t i = 0; !warm || seconds_since(start) < options.seconds; ++i) {
      const auto batch = feed.next(0);
      if (!batch) throw Error(ErrorKind::internal, "the feed ended");
      if (i == 0) bench.first_batch_seconds = seconds_since(opened);
      if (!warm) {  // an epoch, but no longer than is measured
        warm = i + 1 >= speech.order.batches_an_epoch() || seconds_since(start) >= options.seconds;
        if (warm) start = Clock::now();
        continue;
      }
      bench.clips += (*batch)->rows;
      for (const int64_t clip : (*batch)->clips)
        sound += lengths[static_cast<size_t>(clip)].seconds;
    }
    model.compute_stream().synchronize();
    bench.seconds = seconds_since(start);
    bench.clips_per_second = static_cast<double>(bench.clips) / bench.seconds;
    bench.times_real_time = sound / bench.seconds;
    bench.queues = feed.counters(0);
  }
  if (options.step_seconds > 0) {
    bench.steps = bench_steps(speech, feeding, data, model, options.step_seconds, options.seconds);
  }
  bench.stages = stage_rates(speech.corpus, speech_options(options.settings, options.seed));
  bench.padding = padding_share(speech.order.buckets(), lengths);
  bench.bad_clips = speech.bad.total();
  return bench;
}

}  // namespace tandem
