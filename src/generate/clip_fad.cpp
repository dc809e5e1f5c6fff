#include "generate/clip_fad.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "audio/file/audio_file.h"
#include "audio/signal/resample.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "generate/frechet.h"
#include "models/musicgen/musicgen_folder.h"
#include "tandem/error.h"
#include "util/counted_random.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

constexpr double piece_seconds = 30;  // longer sounds are encoded in pieces, to bound the memory

at::Device open_device() {
  const LogicalDevice* device = DeviceScope::current();
  return device ? device->torch_device() : at::Device(at::kCPU);
}

std::vector<float> mono_at(const fs::path& path, int rate) {
  const auto file = open_audio({.path = path.string()});
  const AudioInfo& info = file->info();
  std::vector<float> samples(static_cast<size_t>(info.frames));
  file->read_mono(0, info.frames, samples.data());
  if (info.sample_rate == rate) return samples;
  std::vector<float> moved(
      static_cast<size_t>(resampled_length(info.frames, info.sample_rate, rate)));
  resample_clip(samples.data(), info.frames, info.sample_rate, rate, moved.data());
  return moved;
}

FeatureCloud features_of(const Encodec& codec, const fs::path& path) {
  std::vector<float> samples = mono_at(path, static_cast<int>(codec.size.rate));
  const auto all = static_cast<int64_t>(samples.size());
  const int64_t hop = codec.size.hop();
  const auto rate = static_cast<double>(codec.size.rate);
  const int64_t piece =
      std::max<int64_t>(1, static_cast<int64_t>(piece_seconds * rate) / hop) * hop;
  FeatureCloud cloud;
  for (int64_t begin = 0; begin < all; begin += piece) {
    const int64_t length = std::min(piece, all - begin);
    if (begin > 0 && length < hop) break;  // less than a frame would be mostly padding
    const at::Tensor sound = at::from_blob(samples.data() + begin, {1, 1, length}, at::kFloat)
                                 .to(open_device())
                                 .expand({1, codec.size.channels, length});
    cloud.add(codec.features(sound).squeeze(0));
  }
  return cloud;
}

class Reader {
 public:
  Reader(const Encodec& codec, const FadOptions& options, size_t total, FadReport& report)
      : codec_(codec), options_(options), total_(static_cast<int64_t>(total)), report_(report) {}

  // One cloud a sound; empty ones where it could not be read.
  std::vector<FeatureCloud> read(const std::vector<fs::path>& sounds) {
    std::vector<FeatureCloud> clouds;
    for (const fs::path& sound : sounds) {
      if (options_.stop())
        throw Error(ErrorKind::interrupted, "interrupted; no distance was computed");
      try {
        clouds.push_back(features_of(codec_, sound));
      } catch (const AudioError& error) {
        report_.unread.emplace_back(error.what());
        clouds.emplace_back();
      }
      if (options_.on_progress) options_.on_progress(++done_, total_);
    }
    return clouds;
  }

 private:
  const Encodec& codec_;
  const FadOptions& options_;
  int64_t total_, done_ = 0;
  FadReport& report_;
};

FeatureCloud together(const std::vector<FeatureCloud>& clouds, int64_t& sounds, const char* what) {
  FeatureCloud all;
  for (const FeatureCloud& cloud : clouds) {
    sounds += cloud.count() > 0;
    all.add(cloud);
  }
  if (all.count() == 0) {
    throw Error(ErrorKind::data, fmt::format("no {} could be read, of {}", what, clouds.size()));
  }
  return all;
}

// Clips dealt out like cards after a shuffle; a clip's subset depends on the seed and its place.
std::vector<double> scores_of_subsets(const std::vector<FeatureCloud>& clips,
                                      const FeatureCloud& reference, const FadOptions& options) {
  std::vector<size_t> order;
  for (size_t i = 0; i < clips.size(); ++i)
    if (clips[i].count() > 0) order.push_back(i);
  const size_t subsets =
      std::min(static_cast<size_t>(std::max<int64_t>(1, options.subsets)), order.size() / 2);
  if (subsets < 2) return {};
  for (size_t i = order.size() - 1; i > 0; --i)
    std::swap(order[i], order[counted_below(i + 1, options.seed, "fad subsets", i, 0)]);
  std::vector<FeatureCloud> parts(subsets);
  for (size_t i = 0; i < order.size(); ++i) parts[i % subsets].add(clips[order[i]]);
  std::vector<double> scores;
  for (const FeatureCloud& part : parts) scores.push_back(frechet_distance(part, reference));
  return scores;
}

}  // namespace

Encodec load_codec(const fs::path& model_folder) {
  const MusicgenFolder folder = MusicgenFolder::open(model_folder);
  const auto file = folder.open_weights();
  Weights weights(*file, "");
  Encodec codec = Encodec::load(weights, "audio_encoder.", folder.config.codec, true);
  weights.require_complete("EnCodec with its encoder");
  const at::Device device = open_device();
  codec.visit("", [&](const std::string&, at::Tensor& tensor) { tensor = tensor.to(device); });
  return codec;
}

FadReport measure_fad(const Encodec& codec, const std::vector<fs::path>& clips,
                      const std::vector<fs::path>& references, const FadOptions& options) {
  at::NoGradGuard no_grad;
  FadReport report;
  Reader reader(codec, options, clips.size() + references.size(), report);
  const std::vector<FeatureCloud> reference_clouds = reader.read(references);
  const FeatureCloud reference = together(reference_clouds, report.references, "reference");
  const std::vector<FeatureCloud> clip_clouds = reader.read(clips);
  const FeatureCloud all = together(clip_clouds, report.clips, "clip");
  report.reference_frames = reference.count();
  report.clip_frames = all.count();
  report.score = frechet_distance(all, reference);
  report.subset_scores = scores_of_subsets(clip_clouds, reference, options);
  report.mean = report.score;
  if (const std::vector<double>& scores = report.subset_scores; !scores.empty()) {
    const auto count = static_cast<double>(scores.size());
    report.mean = std::accumulate(scores.begin(), scores.end(), 0.0) / count;
    double squares = 0;
    for (const double score : scores) squares += (score - report.mean) * (score - report.mean);
    report.deviation = std::sqrt(squares / (count - 1));
  }
  for (const FeatureCloud& cloud : clip_clouds) {
    report.clip_scores.push_back(cloud.count() > 0 ? frechet_distance(cloud.mean(), reference)
                                                   : std::numeric_limits<double>::quiet_NaN());
  }
  return report;
}

}  // namespace tandem
