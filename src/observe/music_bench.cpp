#include "observe/music_bench.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "audio/file/write_audio.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "generate/music_engine.h"
#include "models/musicgen/musicgen.h"
#include "nn/model_parts.h"
#include "tandem/error.h"
#include "util/bounded_queue.h"
#include "util/clock.h"

namespace tandem {
namespace {

// Writes clips as float32 WAV in the order they come, and tells when the last of each batch is on
// disk. One thread: with two, a later batch could be on disk before an earlier one.
class TimedWriter {
 public:
  TimedWriter(int64_t batch, int64_t batches, int rate)
      : rate_(rate), left_(static_cast<size_t>(batches), batch), written_(left_.size()) {
    folder_ = std::filesystem::temp_directory_path() /
              ("tandem-bench-" + std::to_string(Clock::now().time_since_epoch().count()));
    std::filesystem::create_directories(folder_);
    thread_ = std::thread([this] { serve(); });
  }
  ~TimedWriter() {
    close();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  void put(size_t batch, size_t index, at::Tensor sound) {
    queue_.put({batch, index, std::move(sound)});
  }
  void close() {
    queue_.close();
    if (thread_.joinable()) thread_.join();
  }
  Clock::time_point written(size_t batch) const { return written_[batch]; }

 private:
  struct Clip {
    size_t batch, index;
    at::Tensor sound;
  };
  void serve() try {
    while (auto clip = queue_.get()) {
      const at::Tensor frames = clip->sound.t().contiguous();
      // Files of the batch before the last are written over: they would fill a disk.
      const std::string name = fmt::format("{}-{}.wav", clip->batch % 2, clip->index);
      write_wav((folder_ / name).string(),
                {frames.const_data_ptr<float>(), static_cast<size_t>(frames.numel())},
                static_cast<int>(frames.size(1)), rate_, SampleFormat::float32);
      if (--left_[clip->batch] == 0) written_[clip->batch] = Clock::now();
    }
  } catch (...) {
    queue_.fail(std::current_exception());  // whoever puts the next clip hears of it
  }

  int rate_;
  std::filesystem::path folder_;
  BoundedQueue<Clip> queue_{256};
  std::vector<int64_t> left_;
  std::vector<Clock::time_point> written_;
  std::thread thread_;
};

std::vector<MusicRequest> requests_of(const MusicBenchOptions& options, int64_t batch,
                                      int64_t vocabulary) {
  std::vector<MusicRequest> requests(static_cast<size_t>(batch));
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].seed = i;
    for (int64_t t = 0; t < options.text_tokens; ++t)
      requests[i].text_ids.push_back((static_cast<int64_t>(i) * 31 + t * 17 + 3) % vocabulary);
  }
  return requests;
}

// The float32 weights the engine's own were made from, where they stand on the device: no run that
// loads a folder has them there.
double decoder_bytes(const Musicgen& model, const LogicalDevice& device) {
  return device.kind() == DeviceKind::cuda ? static_cast<double>(bytes_of(model.decoder)) : 0;
}

MusicBatchBench bench_batch(const Musicgen& model, LogicalDevice& device,
                            const MusicBenchOptions& options, int64_t batch) {
  MusicBatchBench bench{.batch = batch};
  bench.floor = music_step_floor(options, batch);
  const MusicOptions music{.new_tokens = options.steps,
                           .window_tokens = std::max<int64_t>(1503, options.steps),
                           .longest_text = options.text_tokens};
  const int64_t batches = 1 + options.whole_batches;
  TimedWriter writer(batch, batches, static_cast<int>(model.config.codec.rate));
  // After the writer: the engine's end waits for its sound, which goes there.
  const auto engine =
      make_music_engine(model, device, {.precision = options.precision, .cache = options.cache});
  for (int64_t i = 0; i < batches; ++i) {
    try {
      engine->generate(requests_of(options, batch, model.config.text.vocabulary), music,
                       [&writer, i](size_t index, MusicClip clip) {
                         writer.put(static_cast<size_t>(i), index, std::move(clip.sound));
                       });
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::memory) throw;
      bench.fits = false;
      return bench;
    }
    // The first is decoded with nothing beside it.
    if (i > 0) continue;
    const MusicCounters counters = engine->counters();
    bench.decode_seconds = counters.decode_seconds;
    bench.step_seconds = counters.decode_seconds / static_cast<double>(counters.steps);
    bench.clips_per_second = static_cast<double>(batch) / counters.decode_seconds;
  }
  engine->finish();
  writer.close();
  bench.memory_bytes = static_cast<double>(device.memory().used()) - decoder_bytes(model, device);
  bench.captures = engine->counters().captures;
  bench.sound_seconds = engine->counters().sound_seconds / static_cast<double>(batches);
  if (options.whole_batches > 0) {
    const std::chrono::duration<double> all =
        writer.written(static_cast<size_t>(batches) - 1) - writer.written(0);
    bench.whole_seconds = all.count() / static_cast<double>(options.whole_batches);
  }
  return bench;
}

}  // namespace

double music_step_floor(const MusicBenchOptions& options, int64_t batch) {
  const MusicDecoderSize size = Musicgen::config_of(options.size).decoder;
  const auto width = static_cast<double>(size.width), layers = static_cast<double>(size.layers);
  const double half = options.precision == "fp32" ? 4 : 2;
  const double rows = 2.0 * static_cast<double>(batch), steps = static_cast<double>(options.steps);
  const auto outputs = static_cast<double>(size.codebooks * size.vocabulary);
  const double weights = half * (14 * layers * width * width + outputs * width);
  const double position = 2 * half * layers * width;  // keys and values of a position and row
  const double kept = options.cache == "int8" ? position / half : position;
  const double text = position * static_cast<double>(options.text_tokens * batch);
  const double bytes = weights + kept * rows * (steps + 1) / 2 + text + rows * outputs * 8;
  return bytes / options.bandwidth;
}

MusicBench bench_music(LogicalDevice& device, const MusicBenchOptions& options) {
  const at::NoGradGuard no_gradients;
  MusicBench bench{.device = device.info().hardware};
  Musicgen model;
  {
    const DeviceScope scope(device);
    model = Musicgen::make(options.size, 1);
  }
  const bool half = device.kind() == DeviceKind::cuda && options.precision != "fp32";
  bench.precision = !half ? "fp32" : options.precision == "bf16" ? "bf16" : "fp16";
  for (const int64_t batch : options.batches)
    bench.batches.push_back(bench_batch(model, device, options, batch));
  if (std::ranges::find(options.batches, 1) != options.batches.end())
    bench.paths = music_step_paths(model, device, options);
  return bench;
}

}  // namespace tandem
