#include "data/corpus/sound_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "data/corpus/checksum64.h"

namespace tandem {
namespace {

constexpr float full_scale = 0.9999f;  // the highest 16-bit sample is 0.99997
constexpr int shortest_run = 3;        // a lone sample at full scale may be a true peak
constexpr double floor_power = 1e-6;   // -60 dBFS
constexpr double silent_ratio = 1e-4;  // 40 dB
constexpr float no_sound = -120;       // dBFS that stands for digital silence

float decibels(double power) {
  return power > 1e-12 ? static_cast<float>(10 * std::log10(power)) : no_sound;
}

class Listener {
 public:
  explicit Listener(int sample_rate) : piece_(std::max(1, sample_rate / 50)) {}

  void add(const std::vector<float>& samples, size_t count) {
    sum_.add(samples.data(), count * sizeof(float));
    for (size_t i = 0; i < count; ++i) {
      const float sample = samples[i], size = std::fabs(sample);
      peak_ = std::max(peak_, size);
      total_ += sample;
      power_ += static_cast<double>(sample) * sample;
      if (size >= full_scale) {
        ++run_;
      } else if (run_ > 0) {
        end_run();
      }
      if (++filled_ == piece_) end_piece();
    }
    samples_ += static_cast<int64_t>(count);
  }

  void tell(SoundFacts& facts) {
    end_run();
    if (filled_ > 0) end_piece();
    const auto count = static_cast<double>(std::max<int64_t>(1, samples_));
    facts.decoded = true;
    facts.peak = peak_;
    facts.clipping = static_cast<float>(static_cast<double>(clipped_) / count);
    facts.dc = static_cast<float>(total_ / count);
    facts.rms = decibels(all_power_ / count);
    facts.fingerprint = std::max<uint64_t>(1, sum_.value());
    const double loudest = powers_.empty() ? 0 : *std::max_element(powers_.begin(), powers_.end());
    const double silent = std::max(floor_power, loudest * silent_ratio);
    double spoken = 0;
    int64_t spoken_pieces = 0;
    for (const float power : powers_) {
      if (power < silent) continue;
      spoken += power;
      ++spoken_pieces;
    }
    const auto pieces = static_cast<double>(std::max<size_t>(1, powers_.size()));
    facts.silence = static_cast<float>(1 - static_cast<double>(spoken_pieces) / pieces);
    facts.loudness =
        spoken_pieces > 0 ? decibels(spoken / static_cast<double>(spoken_pieces)) : no_sound;
  }

 private:
  void end_run() {
    if (run_ >= shortest_run) clipped_ += run_;
    run_ = 0;
  }
  void end_piece() {
    powers_.push_back(static_cast<float>(power_ / filled_));
    all_power_ += power_;
    power_ = 0;
    filled_ = 0;
  }

  int piece_, filled_ = 0;
  float peak_ = 0;
  double total_ = 0, power_ = 0, all_power_ = 0;
  int64_t samples_ = 0, clipped_ = 0, run_ = 0;
  std::vector<float> powers_;  // of each piece
  Checksum64 sum_;
};

// Frames of the part asked for. A part may end 50 ms after its sound: manifests round.
void place_part(SoundFacts& facts, const AudioInfo& info, const ListenOptions& options,
                const std::string& path) {
  facts.part = options.start > 0 || options.seconds > 0;
  facts.frames = info.frames;
  if (!facts.part) return;
  facts.first_frame = std::llround(options.start * info.sample_rate);
  const int64_t left = info.frames - facts.first_frame;
  const int64_t wanted =
      options.seconds > 0 ? std::llround(options.seconds * info.sample_rate) : left;
  if (left <= 0 || wanted > left + info.sample_rate / 20) {
    throw AudioError(AudioFault::truncated,
                     fmt::format("`{}` has {:.2f} s; a clip of {:.2f} s from {:.2f} s was expected",
                                 path, info.seconds(), options.seconds, options.start));
  }
  facts.frames = std::min(wanted, left);
}

}  // namespace

SoundFacts listen(const AudioSource& source, const ListenOptions& options) {
  OpenOptions open;
  // A part may lie in a recording of many hours.
  if (options.start > 0 || options.seconds > 0) open.limits.max_seconds = 48 * 3600;
  const auto file = open_audio(source, open);
  const AudioInfo& info = file->info();
  SoundFacts facts;
  facts.sample_rate = info.sample_rate;
  facts.channels = info.channels;
  facts.format = info.format;
  place_part(facts, info, options, source.path);
  if (!options.decode || facts.seconds() > options.decode_at_most) return facts;
  constexpr int64_t most = 1 << 15;
  std::vector<float> samples(static_cast<size_t>(std::min(most, facts.frames)));
  Listener listener(info.sample_rate);
  for (int64_t done = 0; done < facts.frames;) {
    const int64_t count = std::min(most, facts.frames - done);
    file->read_mono(facts.first_frame + done, count, samples.data());
    listener.add(samples, static_cast<size_t>(count));
    done += count;
  }
  listener.tell(facts);
  return facts;
}

}  // namespace tandem
