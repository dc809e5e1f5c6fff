// Pictures of at most 256 colours, as PNG.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

using Colour = std::array<uint8_t, 3>;  // red, green, blue

struct Picture {
  int64_t width = 0, height = 0;
  std::vector<Colour> colours;  // 256 at most
  std::vector<uint8_t> points;  // [height, width], places in `colours`, top row first
};

// Throws Error(internal) for a picture that does not hold together.
std::string encode_png(const Picture& picture);

}  // namespace tandem
