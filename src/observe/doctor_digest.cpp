#include "observe/doctor_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "checkpoint/byte_source.h"

namespace tandem {
namespace {

constexpr size_t block_bytes = 64;

// Both take blocks of 64 bytes and close with a 1 bit, zeros and the length in bits (RFC 1321,
// FIPS 180-4); MD5 is little-endian, SHA-256 big-endian.
template <class Rounds>
class Digest {
 public:
  void add(std::string_view bytes) {
    length_ += bytes.size();
    while (!bytes.empty()) {
      if (filled_ == 0 && bytes.size() >= block_bytes) {
        rounds_.block(reinterpret_cast<const unsigned char*>(bytes.data()));
        bytes.remove_prefix(block_bytes);
        continue;
      }
      const size_t part = std::min(block_bytes - filled_, bytes.size());
      std::memcpy(rest_.data() + filled_, bytes.data(), part);
      bytes.remove_prefix(part);
      filled_ += part;
      if (filled_ == block_bytes) flush();
    }
  }

  std::string finish() {
    const uint64_t bits = 8 * length_;
    rest_[filled_++] = 0x80;
    if (filled_ > block_bytes - 8) {
      std::fill(rest_.begin() + static_cast<std::ptrdiff_t>(filled_), rest_.end(), 0);
      flush();
    }
    std::fill(rest_.begin() + static_cast<std::ptrdiff_t>(filled_), rest_.end(), 0);
    for (size_t i = 0; i < 8; ++i)
      rest_[block_bytes - 8 + i] =
          static_cast<unsigned char>(bits >> 8 * (Rounds::big_endian ? 7 - i : i));
    flush();
    std::string text;
    for (const uint32_t word : rounds_.state)
      for (size_t i = 0; i < 4; ++i)
        text += fmt::format("{:02x}", word >> 8 * (Rounds::big_endian ? 3 - i : i) & 0xff);
    return text;
  }

 private:
  void flush() {
    rounds_.block(rest_.data());
    filled_ = 0;
  }
  Rounds rounds_;
  std::array<unsigned char, block_bytes> rest_{};
  size_t filled_ = 0;
  uint64_t length_ = 0;
};

// The first 32 bits of the fractions of the roots of the first primes.
template <size_t count>
std::array<uint32_t, count> fractions_of_roots(int root) {
  std::array<uint32_t, count> words{};
  size_t found = 0;
  for (int candidate = 2; found < count; ++candidate) {
    bool prime = true;
    for (int divisor = 2; divisor * divisor <= candidate; ++divisor)
      prime = prime && candidate % divisor != 0;
    if (!prime) continue;
    const long double value = root == 2 ? std::sqrt(static_cast<long double>(candidate))
                                        : std::cbrt(static_cast<long double>(candidate));
    words[found++] = static_cast<uint32_t>((value - std::floor(value)) * 4294967296.0L);
  }
  return words;
}

struct Sha256 {
  static constexpr bool big_endian = true;
  std::array<uint32_t, 8> state = fractions_of_roots<8>(2);

  void block(const unsigned char* bytes) {
    static const std::array<uint32_t, 64> constants = fractions_of_roots<64>(3);
    std::array<uint32_t, 64> w;
    for (size_t i = 0; i < 16; ++i)
      w[i] = static_cast<uint32_t>(bytes[4 * i]) << 24 |
             static_cast<uint32_t>(bytes[4 * i + 1]) << 16 |
             static_cast<uint32_t>(bytes[4 * i + 2]) << 8 | bytes[4 * i + 3];
    for (size_t i = 16; i < 64; ++i) {
      const uint32_t a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
             (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                             ((e & f) ^ (~e & g)) + constants[i] + w[i];
      const uint32_t second =
          (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
    }
    const std::array<uint32_t, 8> added = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; ++i) state[i] += added[i];
  }
};

struct Md5 {
  static constexpr bool big_endian = false;
  std::array<uint32_t, 4> state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};

  void block(const unsigned char* bytes) {
    static const std::array<uint32_t, 64> constants = [] {
      std::array<uint32_t, 64> words{};
      for (size_t i = 0; i < 64; ++i)
        words[i] = static_cast<uint32_t>(std::fabs(std::sin(static_cast<long double>(i + 1))) *
                                         4294967296.0L);
      return words;
    }();
    static constexpr int shifts[4][4] = {
        {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    std::array<uint32_t, 16> w;
    for (size_t i = 0; i < 16; ++i)
      w[i] = static_cast<uint32_t>(bytes[4 * i + 3]) << 24 |
             static_cast<uint32_t>(bytes[4 * i + 2]) << 16 |
             static_cast<uint32_t>(bytes[4 * i + 1]) << 8 | bytes[4 * i];
    auto [a, b, c, d] = state;
    for (size_t i = 0; i < 64; ++i) {
      const size_t round = i / 16;
      const uint32_t mixed = round == 0   ? (b & c) | (~b & d)
                             : round == 1 ? (d & b) | (~d & c)
                             : round == 2 ? b ^ c ^ d
                                          : c ^ (b | ~d);
      static constexpr size_t steps[4] = {1, 5, 3, 7}, starts[4] = {0, 1, 5, 0};
      const uint32_t sum = a + mixed + constants[i] + w[(steps[round] * i + starts[round]) % 16];
      a = d, d = c, c = b, b += std::rotl(sum, shifts[round][i % 4]);
    }
    const std::array<uint32_t, 4> added = {a, b, c, d};
    for (size_t i = 0; i < 4; ++i) state[i] += added[i];
  }
};

template <class Rounds>
std::string file_digest(const std::filesystem::path& path) {
  constexpr uint64_t piece = 1 << 20;
  const auto source = open_bytes(path);
  Digest<Rounds> digest;
  std::string block;
  for (uint64_t at = 0; at < source->size(); at += piece) {
    block.resize(std::min(piece, source->size() - at));
    source->read(at, block.data(), block.size());
    digest.add(block);
  }
  return digest.finish();
}

template <class Rounds>
std::string text_digest(std::string_view bytes) {
  Digest<Rounds> digest;
  digest.add(bytes);
  return digest.finish();
}

}  // namespace

std::string digest_of(std::string_view bytes, DigestKind kind) {
  return kind == DigestKind::md5 ? text_digest<Md5>(bytes) : text_digest<Sha256>(bytes);
}

std::string digest_of_file(const std::filesystem::path& path, DigestKind kind) {
  return kind == DigestKind::md5 ? file_digest<Md5>(path) : file_digest<Sha256>(path);
}

}  // namespace tandem
