#include "audio/file/mpeg_tag.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace tandem {
namespace {

using Bytes = std::span<const std::byte>;

bool begins(Bytes bytes, std::string_view word) {
  return bytes.size() >= word.size() && std::memcmp(bytes.data(), word.data(), word.size()) == 0;
}

// Where a Xing tag would stand in the frame that begins here: after the header and the side
// information of layer III (ISO/IEC 11172-3 and 13818-3). Nothing when these are no frame.
std::optional<size_t> tag_place(Bytes frame) {
  if (frame.size() < 4) return std::nullopt;
  const auto at = [&](size_t i) { return std::to_integer<unsigned>(frame[i]); };
  if (at(0) != 0xFF || (at(1) & 0xE0) != 0xE0) return std::nullopt;
  const unsigned version = at(1) >> 3 & 3, layer = at(1) >> 1 & 3;
  const bool reserved = version == 1 || layer == 0 || at(2) >> 4 == 15 || (at(2) >> 2 & 3) == 3;
  if (reserved) return std::nullopt;
  const bool first_version = version == 3, mono = at(3) >> 6 == 3;
  return 4 + (first_version ? (mono ? 17U : 32U) : (mono ? 9U : 17U));
}

int64_t after_id3(Bytes head) {
  if (head.size() < 10 || !begins(head, "ID3")) return 0;
  int64_t size = 10;
  for (size_t i = 0; i < 4; ++i) {
    size += (std::to_integer<int64_t>(head[6 + i]) & 0x7F) << (21 - 7 * i);
  }
  const bool footer = (head[5] & std::byte{0x10}) != std::byte{0};
  return footer ? size + 10 : size;
}

MpegTag read_tag(Bytes tag, int64_t there) {
  if (tag.size() < 16 || !(begins(tag, "Xing") || begins(tag, "Info"))) return {};
  const auto big_endian = [&](size_t i) {
    int64_t number = 0;
    for (size_t j = 0; j < 4; ++j) number = number << 8 | std::to_integer<int64_t>(tag[i + j]);
    return number;
  };
  constexpr int64_t has_frames = 1, has_bytes = 2;
  MpegTag found = {.tells_length = (big_endian(4) & has_frames) != 0};
  if (found.tells_length && (big_endian(4) & has_bytes) != 0) {
    found.missing_bytes = std::max<int64_t>(0, big_endian(12) - there);
  }
  return found;
}

}  // namespace

std::optional<MpegTag> find_mpeg_tag(ByteSource& source) {
  // Tags leave empty bytes before the first frame.
  std::array<std::byte, 8 << 10> bytes;
  const auto read = [&](int64_t place) {
    return Bytes(bytes).first(static_cast<size_t>(source.read_at(place, bytes)));
  };
  const int64_t start = after_id3(read(0));
  const Bytes frames = read(start);
  const auto first = static_cast<size_t>(
      std::ranges::find_if(frames, [](std::byte b) { return b != std::byte{0}; }) - frames.begin());
  const auto place = tag_place(frames.subspan(first));
  if (!place) return std::nullopt;
  const Bytes tag = frames.subspan(std::min(first + *place, frames.size()));
  return read_tag(tag, source.size() - start - static_cast<int64_t>(first));
}

}  // namespace tandem
