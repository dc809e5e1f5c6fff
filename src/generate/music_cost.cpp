#include "generate/music_cost.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <thread>

#include "generate/music_windows.h"
#include "util/text.h"

namespace tandem {
namespace {

struct Sheet {
  const char* part;      // of the name the driver gives
  double tera_bytes;     // a second
  double tera_products;  // half precision, dense, floating-point operations a second
};
// The vendors' data sheets. Longer names first: an H100 PCIe is no H100 SXM.
constexpr std::array sheets = {Sheet{"h200", 4.8, 990},
                               Sheet{"h100 pcie", 2.0, 756},
                               Sheet{"h100 nvl", 3.9, 835},
                               Sheet{"h100", 3.35, 990},
                               Sheet{"b200", 8.0, 2250},
                               Sheet{"a100-sxm4-40gb", 1.56, 312},
                               Sheet{"a100-pcie-40gb", 1.56, 312},
                               Sheet{"a100", 1.94, 312},
                               Sheet{"l40s", 0.86, 362},
                               Sheet{"l4", 0.3, 121},
                               Sheet{"a10", 0.6, 125},
                               Sheet{"v100", 0.9, 125},
                               Sheet{"t4", 0.32, 65},
                               Sheet{"4090", 1.01, 165},
                               Sheet{"3090", 0.94, 71},
                               Sheet{"3080", 0.76, 60},
                               Sheet{"3060", 0.36, 25}};

// What of the data sheet a step comes to; everything between products and attention is in it. With
// `layer_launch` this gives what an H200 was seen to do: small, 1, 32, 64 clips 0.67, 2.39, 4.16 ms
// a step (seen 0.66, 2.42, 3.95), large, 32 clips 9.8 (9.6); 8 clips of small and one of large take
// a quarter longer than it says.
constexpr double reached_share = 0.6;

// An ordinary core, with 4 bytes a number.
constexpr double core_flops = 2e10, machine_bytes = 2e10;

bool names(std::string_view name, std::string_view part) {
  const size_t at = name.find(part);
  if (at == std::string_view::npos) return false;
  const auto joined = [&](size_t i) {
    return i < name.size() && (std::isalnum(static_cast<unsigned char>(name[i])) != 0);
  };
  // A GH200 is no H200, and an L40 no L4.
  return !(at > 0 && joined(at - 1)) && !joined(at + part.size());
}

double number_bytes(const MusicEngineOptions& engine) { return engine.precision == "fp32" ? 4 : 2; }

// One window: reads weights each step, and of earlier columns more each step.
double window_seconds(const MusicBatchCost& cost, int64_t before, int64_t steps) {
  const MusicDecoderSize& size = cost.model.decoder;
  const auto layers = static_cast<double>(size.layers), width = static_cast<double>(size.width);
  const double guided = cost.music.sampling.guidance_scale > 1 ? 2 : 1;
  const double rows = guided * static_cast<double>(cost.clips);
  const auto count = static_cast<double>(steps);
  const double weights = step_weight_bytes(size, cost.engine);
  const double products = 2 * weights / number_bytes(cost.engine) * rows;
  const double column = 2 * layers * width;  // numbers of keys and values of one row
  const double kept_bytes = cost.engine.cache == "int8" ? 1 : number_bytes(cost.engine);
  const double mean_columns = static_cast<double>(before) + (count + 1) / 2;
  const double again = cost.engine.use_cache ? 1 : mean_columns;  // without it all is done again
  const double history =
      column * (kept_bytes * rows * mean_columns +
                number_bytes(cost.engine) * static_cast<double>(cost.music.longest_text) *
                    static_cast<double>(cost.clips));
  const double step = std::max(weights / cost.speed.bytes, again * products / cost.speed.flops) +
                      history / cost.speed.bytes;
  return count * (step / reached_share + layers * cost.speed.launch);
}

}  // namespace

MusicDeviceSpeed music_device_speed(const MusicPlanDevice& device) {
  const auto sharing = static_cast<double>(std::max<int64_t>(1, device.sharing));
  constexpr double tera = 1e12, layer_launch = 1.5e-5;
  if (!device.gpu) {
    const double cores = std::max(1U, std::thread::hardware_concurrency());
    return {
        .bytes = machine_bytes / sharing, .flops = cores * core_flops / sharing, .known = false};
  }
  const std::string name = lower(device.hardware);
  for (const Sheet& sheet : sheets) {
    if (!names(name, sheet.part)) continue;
    return {.bytes = sheet.tera_bytes * tera / sharing,
            .flops = sheet.tera_products * tera / sharing,
            .launch = layer_launch};
  }
  return {.bytes = 0.5 * tera / sharing,
          .flops = 60 * tera / sharing,
          .launch = layer_launch,
          .known = false};
}

double step_weight_bytes(const MusicDecoderSize& size, const MusicEngineOptions& engine) {
  const auto layers = static_cast<double>(size.layers), width = static_cast<double>(size.width);
  const auto inner = static_cast<double>(size.inner);
  // Keys and values of the caption are made once, so their weights are not read again.
  const double layer = 4 * width * width + 2 * width * width + 2 * width * inner;
  const double heads = static_cast<double>(size.codebooks * size.vocabulary) * width;
  return number_bytes(engine) * (layers * layer + heads);
}

double codec_flops_a_frame(const EncodecSize& codec) {
  const auto product = [](double in, double out, double taps) { return 2 * in * out * taps; };
  double channels = static_cast<double>(codec.filters << codec.ratios.size());
  double sum =
      product(static_cast<double>(codec.hidden), channels, static_cast<double>(codec.kernel)) +
      static_cast<double>(codec.lstm_layers) * product(channels, 8 * channels, 1);
  double samples = 1;  // of this stage, a frame
  for (const int64_t ratio : codec.ratios) {
    const double next = channels / 2, inside = next / static_cast<double>(codec.compress);
    sum += samples * product(channels, next, 2.0 * static_cast<double>(ratio));
    samples *= static_cast<double>(ratio);
    const double residual = product(next, inside, static_cast<double>(codec.residual_kernel)) +
                            product(inside, next, 1);
    sum += samples * static_cast<double>(codec.residual_layers) * residual;
    channels = next;
  }
  return sum + samples * product(channels, static_cast<double>(codec.channels),
                                 static_cast<double>(codec.last_kernel));
}

double music_batch_seconds(const MusicBatchCost& cost) {
  double decode = 0;
  for (const MusicWindow& window : music_windows(cost.model.decoder, cost.music, 0))
    decode += window_seconds(cost, window.prompt_frames, window.new_tokens);
  const double frames =
      static_cast<double>(frames_of_tokens(cost.model.decoder, cost.music.new_tokens));
  const double sound = static_cast<double>(cost.clips * cost.model.decoder.channels) * frames *
                       codec_flops_a_frame(cost.model.codec) / (cost.speed.flops * reached_share);
  // A GPU makes the sound of the batch before meanwhile.
  return cost.speed.launch > 0 ? std::max(decode, sound) : decode + sound;
}

}  // namespace tandem
