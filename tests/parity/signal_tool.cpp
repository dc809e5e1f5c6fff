// For tests/parity: runs one piece of signal work for each line of standard input. A clip is a file
// of raw float32; it is worked on as the first row of a ragged batch whose other row is longer.
//   resample FROM TO IN OUT            mel FROM FRONT_END IN OUT (resampled first)
//   logs FROM FRONT_END IN OUT (as mel, not standardised)
//   filters FRONT_END - OUT            loudness RATE IN OUT
//   trim TOP_DB FRAME HOP IN OUT       preemphasis IN OUT
//   pitch RATE SEMITONES IN OUT        noise SNR IN OUT
//   time RATE FRONT_END IN OUT (microseconds of one clip on one thread, the best of 200)
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "audio/signal/augment.h"
#include "audio/signal/loudness.h"
#include "audio/signal/mel.h"
#include "audio/signal/preemphasis.h"
#include "audio/signal/resample.h"
#include "audio/signal/trim.h"
#include "tandem/error.h"

namespace {

using tandem::Waves;

at::Tensor read_clip(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  at::Tensor clip = at::empty({static_cast<int64_t>(bytes.size() / 4)}, at::kFloat);
  std::copy_n(bytes.data(), clip.nbytes(), static_cast<char*>(clip.mutable_data_ptr()));
  return clip;
}

void write_values(const std::string& path, const at::Tensor& values) {
  const at::Tensor raw = values.to(at::kFloat).contiguous();
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(raw.const_data_ptr()),
             static_cast<std::streamsize>(raw.nbytes()));
}

Waves batch(const at::Tensor& clip, int rate) {
  const int64_t samples = clip.size(0), longer = samples + 777;
  at::Tensor rows = at::zeros({2, longer});
  rows[0].slice(0, 0, samples).copy_(clip);
  rows[1].copy_(at::sin(at::arange(longer) * 0.1) * 0.5);
  return {rows, {samples, longer}, rate};
}

at::Tensor first_row(const Waves& waves) { return waves.samples[0].slice(0, 0, waves.lengths[0]); }

tandem::MelOptions front_end(const std::string& name) {
  const auto options = tandem::find_mel(name);
  if (!options)
    throw tandem::Error(tandem::ErrorKind::usage, "there is no mel front end `" + name + "`");
  return *options;
}

at::Tensor best_time(const at::Tensor& clip, const tandem::MelOptions& options) {
  const int64_t samples = clip.size(0), frames = tandem::mel_frames(samples, options);
  at::Tensor out = at::empty({options.mels, frames});
  double best = 1e9;
  for (int i = 0; i < 200; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    tandem::log_mel_clip(clip.const_data_ptr<float>(), samples, options, frames,
                         out.mutable_data_ptr<float>(), frames);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count());
  }
  return at::tensor(best);
}

at::Tensor answer(std::istream& words, const std::string& mode, std::string& out) {
  std::string name, in;
  double number = 0;
  int rate = 0, to = 0;
  if (mode == "filters") {
    words >> name >> in >> out;
    return tandem::mel_filters(front_end(name));
  }
  if (mode == "resample") {
    words >> rate >> to >> in >> out;
    return first_row(tandem::resample(batch(read_clip(in), rate), to));
  }
  if (mode == "mel" || mode == "logs") {
    words >> rate >> name >> in >> out;
    tandem::MelOptions options = front_end(name);
    if (mode == "logs") options.standardise = false;
    const Waves waves = tandem::resample(batch(read_clip(in), rate), options.sample_rate);
    return tandem::log_mel(waves, options)[0].slice(1, 0,
                                                    tandem::mel_frames(waves.lengths[0], options));
  }
  if (mode == "time") {
    words >> rate >> name >> in >> out;
    return best_time(read_clip(in), front_end(name));
  }
  if (mode == "loudness") {
    words >> rate >> in >> out;
    return tandem::integrated_loudness(batch(read_clip(in), rate))[0];
  }
  if (mode == "trim") {
    tandem::TrimOptions options;
    words >> options.top_db >> options.frame >> options.hop >> in >> out;
    const tandem::Trimmed trimmed = tandem::trim_silence(batch(read_clip(in), 1), options);
    return at::tensor(std::vector<double>{static_cast<double>(trimmed.starts[0]),
                                          static_cast<double>(trimmed.waves.lengths[0])});
  }
  if (mode == "preemphasis") {
    words >> in >> out;
    return first_row(tandem::preemphasise(batch(read_clip(in), 1)));
  }
  if (mode == "pitch") {
    words >> rate >> number >> in >> out;
    return first_row(tandem::pitch_shift(batch(read_clip(in), rate), {number, 0.0}));
  }
  if (mode == "noise") {
    words >> number >> in >> out;
    return first_row(tandem::add_noise(batch(read_clip(in), 1), {number, 0.0}, 7, {1, 2}));
  }
  throw tandem::Error(tandem::ErrorKind::usage, "there is no mode `" + mode + "`");
}

}  // namespace

int main() {
  at::set_num_threads(1);
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      std::istringstream words(line);
      std::string mode, out;
      words >> mode;
      const at::Tensor values = answer(words, mode, out);
      write_values(out, values);
    } catch (const std::exception& error) {
      std::cerr << "signal_tool: `" << line << "`: " << error.what() << '\n';
      return 1;
    }
  }
  return 0;
}
