#include "observe/png.h"

#include <algorithm>

#include "checkpoint/crc32.h"
#include "observe/deflate.h"
#include "tandem/error.h"

namespace tandem {
namespace {

void append_number(std::string& out, uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift);
}

void append_chunk(std::string& out, const std::string& name, const std::string& data) {
  append_number(out, static_cast<uint32_t>(data.size()));
  out += name + data;
  append_number(out, crc32(name + data));
}

bool holds_together(const Picture& picture) {
  constexpr int64_t most = 1 << 20;
  if (picture.width < 1 || picture.height < 1) return false;
  if (picture.width > most || picture.height > most) return false;
  if (picture.colours.empty() || picture.colours.size() > 256) return false;
  if (picture.points.size() != static_cast<size_t>(picture.width * picture.height)) return false;
  return *std::ranges::max_element(picture.points) < picture.colours.size();
}

}  // namespace

std::string encode_png(const Picture& picture) {
  if (!holds_together(picture))
    throw Error(ErrorKind::internal, "a picture's points do not fit its size or its colours");
  std::string header, palette, rows;
  append_number(header, static_cast<uint32_t>(picture.width));
  append_number(header, static_cast<uint32_t>(picture.height));
  header += '\x08';                // bits a point
  header += '\x03';                // points are places in the palette
  header += std::string(3, '\0');  // the only compression, the only filters, not interlaced
  for (const Colour& colour : picture.colours) palette.append(colour.begin(), colour.end());
  const auto width = static_cast<size_t>(picture.width);
  for (size_t start = 0; start < picture.points.size(); start += width) {
    rows += '\0';  // no filter: neighbours of a palette say nothing about each other
    rows.append(reinterpret_cast<const char*>(picture.points.data()) + start, width);
  }
  std::string png = "\x89PNG\r\n\x1A\n";
  append_chunk(png, "IHDR", header);
  append_chunk(png, "PLTE", palette);
  append_chunk(png, "IDAT", deflated(rows));
  append_chunk(png, "IEND", "");
  return png;
}

}  // namespace tandem
