#include "observe/mel_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tandem/error.h"

namespace tandem {
namespace {

constexpr int64_t wanted_height = 160, most_width = 1600;

// Between the anchors of a path through a colour space in which distance is what people see
// (OKLab): lightness, towards red (from green), towards yellow (from blue).
struct Shade {
  double lightness, red, yellow;
};
constexpr std::array<Shade, 5> path = {{{0.24, 0.06, -0.10},
                                        {0.41, 0.00, -0.10},
                                        {0.58, -0.08, -0.03},
                                        {0.75, -0.14, 0.10},
                                        {0.92, -0.03, 0.18}}};

uint8_t to_srgb(double linear) {
  const double x = std::clamp(linear, 0.0, 1.0);
  const double curved = x <= 0.0031308 ? 12.92 * x : 1.055 * std::pow(x, 1 / 2.4) - 0.055;
  return static_cast<uint8_t>(std::lround(255 * curved));
}

Colour from_oklab(const Shade& shade) {
  const auto cubed = [](double x) { return x * x * x; };
  const double l = cubed(shade.lightness + 0.3963377774 * shade.red + 0.2158037573 * shade.yellow);
  const double m = cubed(shade.lightness - 0.1055613458 * shade.red - 0.0638541728 * shade.yellow);
  const double s = cubed(shade.lightness - 0.0894841775 * shade.red - 1.2914855480 * shade.yellow);
  return {to_srgb(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
          to_srgb(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
          to_srgb(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

struct Range {
  float low = 0, high = 1;
};

Range shown_range(std::span<const float> values) {
  std::vector<float> finite;
  std::ranges::copy_if(values, std::back_inserter(finite),
                       [](float x) { return std::isfinite(x); });
  if (finite.empty()) return {};
  const auto at_share = [&](double share) {
    const auto place = static_cast<ptrdiff_t>(share * static_cast<double>(finite.size() - 1));
    std::nth_element(finite.begin(), finite.begin() + place, finite.end());
    return finite[static_cast<size_t>(place)];
  };
  Range range{at_share(0.01), at_share(0.999)};
  if (!(range.high > range.low)) range.high = range.low + 1;
  return range;
}

uint8_t shown_point(float value, const Range& range) {
  if (!std::isfinite(value)) return 0;
  const float share = (value - range.low) / (range.high - range.low);
  return static_cast<uint8_t>(std::lround(255 * std::clamp(share, 0.0F, 1.0F)));
}

}  // namespace

Colour loudness_colour(double share) {
  const double place = std::clamp(share, 0.0, 1.0) * (path.size() - 1);
  const size_t before = std::min(static_cast<size_t>(place), path.size() - 2);
  const double part = place - static_cast<double>(before);
  const Shade &a = path[before], &b = path[before + 1];
  return from_oklab({std::lerp(a.lightness, b.lightness, part), std::lerp(a.red, b.red, part),
                     std::lerp(a.yellow, b.yellow, part)});
}

Picture mel_picture(const MelView& mel) {
  if (mel.mels < 1 || mel.frames < 1 ||
      mel.values.size() != static_cast<size_t>(mel.mels * mel.frames)) {
    throw Error(ErrorKind::internal,
                fmt::format("a spectrogram of {} bands and {} frames has {} values", mel.mels,
                            mel.frames, mel.values.size()));
  }
  const int64_t enlarged = std::max<int64_t>(
      1, std::min(wanted_height / mel.mels, std::max<int64_t>(1, most_width / mel.frames)));
  Picture picture{.width = std::min(mel.frames * enlarged, most_width),
                  .height = mel.mels * enlarged};
  for (int i = 0; i < 256; ++i) picture.colours.push_back(loudness_colour(i / 255.0));
  const Range range = shown_range(mel.values);
  picture.points.reserve(static_cast<size_t>(picture.width * picture.height));
  for (int64_t row = 0; row < picture.height; ++row) {
    const int64_t band = mel.mels - 1 - row / enlarged;
    for (int64_t column = 0; column < picture.width; ++column) {
      const int64_t frame = column * mel.frames / picture.width;
      picture.points.push_back(
          shown_point(mel.values[static_cast<size_t>(band * mel.frames + frame)], range));
    }
  }
  return picture;
}

}  // namespace tandem
