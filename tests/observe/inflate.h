// The other way round, for tests: what a zlib stream of one block with fixed codes holds. Written
// from RFC 1950 and 1951, independent of the code that compresses. Bytes that make no sense throw.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tandem::tests {

class FixedInflater {
 public:
  explicit FixedInflater(std::string_view stream) : stream_(stream) {}

  std::string all() {
    if (number(8) != 0x78 || number(8) != 0x01) throw std::runtime_error("no zlib header");
    if (number(1) != 1 || number(2) != 1) throw std::runtime_error("not one block of fixed codes");
    std::string out;
    for (int symbol = 0; (symbol = literal_or_length()) != 256;) {
      if (symbol < 256) {
        out += static_cast<char>(symbol);
        continue;
      }
      const size_t length = extended(symbol - 257, length_base, length_extra);
      const size_t distance = extended(code(5), distance_base, distance_extra);
      if (distance > out.size()) throw std::runtime_error("a distance before the start");
      for (size_t i = 0; i < length; ++i) out += out[out.size() - distance];
    }
    if ((place_ + 7) / 8 + 4 != stream_.size()) throw std::runtime_error("bytes are left");
    return out;
  }

 private:
  static constexpr int length_base[] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                        15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                        67, 83, 99, 115, 131, 163, 195, 227, 258};
  static constexpr int length_extra[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                         2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
  static constexpr int distance_base[] = {
      1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
      193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
  static constexpr int distance_extra[] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                           6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

  int bit() {
    if (place_ / 8 >= stream_.size()) throw std::runtime_error("cut off");
    const int value = static_cast<uint8_t>(stream_[place_ / 8]) >> (place_ % 8) & 1;
    ++place_;
    return value;
  }
  int number(int bits) {
    int value = 0;
    for (int i = 0; i < bits; ++i) value |= bit() << i;
    return value;
  }
  int code(int bits, int start = 0) {
    for (int i = 0; i < bits; ++i) start = start << 1 | bit();
    return start;
  }
  int literal_or_length() {
    int value = code(7);
    if (value < 0x18) return 256 + value;
    value = code(1, value);
    if (value >= 0x30 && value < 0xC0) return value - 0x30;
    if (value >= 0xC0 && value < 0xC8) return 280 + value - 0xC0;
    return 144 + code(1, value) - 0x190;
  }
  template <size_t size>
  size_t extended(int symbol, const int (&base)[size], const int (&extra)[size]) {
    if (symbol < 0 || symbol >= static_cast<int>(size)) throw std::runtime_error("no such code");
    return static_cast<size_t>(base[symbol] + number(extra[symbol]));
  }

  std::string_view stream_;
  size_t place_ = 0;  // in bits
};

}  // namespace tandem::tests
