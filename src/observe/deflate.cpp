#include "observe/deflate.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace tandem {
namespace {

constexpr size_t shortest = 3, longest = 258, window = 32768;

class BitWriter {
 public:
  explicit BitWriter(std::string& out) : out_(out) {}
  // Numbers: lowest bit first.
  void bits(uint32_t value, int count) {
    held_ |= uint64_t{value} << held_count_;
    for (held_count_ += count; held_count_ >= 8; held_count_ -= 8, held_ >>= 8)
      out_ += static_cast<char>(held_);
  }
  // Codes: highest bit first.
  void code(uint32_t value, int count) {
    uint32_t turned = 0;
    for (int bit = 0; bit < count; ++bit) turned |= (value >> bit & 1) << (count - 1 - bit);
    bits(turned, count);
  }
  void finish() {
    if (held_count_ > 0) bits(0, 8 - held_count_);
  }

 private:
  std::string& out_;
  uint64_t held_ = 0;
  int held_count_ = 0;
};

// The fixed code of a byte (0-255), the end (256) or a length (257-285).
void write_symbol(BitWriter& out, uint32_t symbol) {
  if (symbol < 144) return out.code(0x30 + symbol, 8);
  if (symbol < 256) return out.code(0x190 + symbol - 144, 9);
  if (symbol < 280) return out.code(symbol - 256, 7);
  out.code(0xC0 + symbol - 280, 8);
}

// Lengths and distances are coded by ranges that double: four, or two, ranges for each power of
// two, with the rest in plain bits.
void write_length(BitWriter& out, size_t length) {
  if (length == longest) return write_symbol(out, 285);
  const auto rest = static_cast<uint32_t>(length - shortest);
  if (rest < 8) return write_symbol(out, 257 + rest);
  const int extra = std::bit_width(rest) - 3;
  write_symbol(out, 257 + static_cast<uint32_t>(4 * extra) + (rest >> extra));
  out.bits(rest & ((1U << extra) - 1), extra);
}

void write_distance(BitWriter& out, size_t distance) {
  const auto rest = static_cast<uint32_t>(distance - 1);
  if (rest < 4) return out.code(rest, 5);
  const int extra = std::bit_width(rest) - 2;
  out.code(static_cast<uint32_t>(2 * extra) + (rest >> extra), 5);
  out.bits(rest & ((1U << extra) - 1), extra);
}

// Where the three bytes at a place were seen last.
class LastSeen {
 public:
  explicit LastSeen(std::string_view bytes) : bytes_(bytes), places_(size_t{1} << 15, nowhere) {}
  static constexpr size_t nowhere = ~size_t{0};

  size_t find_and_note(size_t place) {
    size_t& slot = places_[slot_of(place)];
    const size_t before = slot;
    slot = place;
    return before;
  }

 private:
  size_t slot_of(size_t place) const {
    const auto at = [&](size_t i) { return uint32_t{static_cast<uint8_t>(bytes_[place + i])}; };
    return (at(0) | at(1) << 8 | at(2) << 16) * 0x9E3779B1U >> 17;
  }
  std::string_view bytes_;
  std::vector<size_t> places_;
};

size_t equal_bytes(std::string_view bytes, size_t before, size_t place) {
  const size_t most = std::min(longest, bytes.size() - place);
  size_t count = 0;
  while (count < most && bytes[before + count] == bytes[place + count]) ++count;
  return count;
}

}  // namespace

uint32_t adler32(std::string_view bytes) {
  constexpr uint32_t prime = 65521;
  uint32_t low = 1, high = 0;
  for (const char byte : bytes) {
    low = (low + static_cast<uint8_t>(byte)) % prime;
    high = (high + low) % prime;
  }
  return high << 16 | low;
}

std::string deflated(std::string_view bytes) {
  std::string out = "\x78\x01";  // deflate with a window of 32 KiB
  BitWriter writer(out);
  writer.bits(1, 1);  // the last block
  writer.bits(1, 2);  // fixed codes
  LastSeen seen(bytes);
  for (size_t place = 0; place < bytes.size();) {
    size_t length = 0, before = LastSeen::nowhere;
    if (place + shortest <= bytes.size()) before = seen.find_and_note(place);
    if (before != LastSeen::nowhere && place - before <= window)
      length = equal_bytes(bytes, before, place);
    if (length < shortest) {
      write_symbol(writer, static_cast<uint8_t>(bytes[place++]));
      continue;
    }
    write_length(writer, length);
    write_distance(writer, place - before);
    for (size_t end = place++ + length; place < end; ++place)
      if (place + shortest <= bytes.size()) seen.find_and_note(place);
  }
  write_symbol(writer, 256);
  writer.finish();
  const uint32_t sum = adler32(bytes);
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(sum >> shift);
  return out;
}

}  // namespace tandem
