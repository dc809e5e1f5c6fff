#include "audio/file/wav_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

namespace tandem {
namespace {

constexpr uint64_t unknown_size = 0xFFFFFFFF;
constexpr int most_chunks = 4096;  // before the samples; a bound on the work for a hostile file

template <class Number>
Number number_at(std::span<const std::byte> bytes, size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

bool word_is(std::span<const std::byte> bytes, size_t offset, std::string_view word) {
  return bytes.size() >= offset + 4 && std::memcmp(bytes.data() + offset, word.data(), 4) == 0;
}

// What programs that cannot go back to correct the header write there: ffmpeg all ones, libsndfile
// and others zero, SoX 0x7FFFF000, arecord 2 GiB, some all ones less the header.
bool written_to_a_pipe(uint64_t data_size) {
  return data_size == 0 || data_size == 0x7FFFF000 || data_size == 0x7FFFFFFF ||
         data_size == 0x80000000 || (data_size >= 0xFFFFFF00 && data_size <= unknown_size) ||
         data_size == ~uint64_t{0};
}

class WavParser {
 public:
  WavParser(ByteSource& source, std::span<const std::byte> head) : source_(source), head_(head) {}

  WavLayout parse() {
    const auto start = bytes_at(0, 12);
    if (start.size() < 12) fail(AudioFault::truncated, "it ends within the first 12 bytes");
    has_64_bit_sizes_ = !word_is(start, 0, "RIFF");
    riff_end_ = uint64_t{8} + number_at<uint32_t>(start, 4);
    walk();
    if (!format_ || !data_offset_) {
      const bool cut = overrun_ || (riff_end_ > size() && !written_to_a_pipe(riff_end_ - 8));
      fail(cut ? AudioFault::truncated : AudioFault::not_audio,
           fmt::format("it has no `{}` chunk{}", format_ ? "data" : "fmt ",
                       cut ? ", being cut short" : ""));
    }
    WavLayout layout = *format_;
    layout.data_offset = static_cast<int64_t>(*data_offset_);
    place_data(layout);
    return layout;
  }

 private:
  [[noreturn]] void fail(AudioFault fault, const std::string& why) const {
    throw AudioError(fault, fmt::format("{} is not a whole WAV file: {}", source_.name(), why));
  }
  uint64_t size() const { return static_cast<uint64_t>(source_.size()); }

  // Up to `count` (at most 64) bytes, from the head when it has them.
  std::span<const std::byte> bytes_at(uint64_t offset, size_t count) {
    if (offset <= head_.size() && count <= head_.size() - offset) {
      return head_.subspan(static_cast<size_t>(offset), count);
    }
    const int64_t got =
        source_.read_at(static_cast<int64_t>(offset), std::span(more_).first(count));
    return std::span<const std::byte>(more_).first(static_cast<size_t>(got));
  }

  void walk() {
    uint64_t place = 12;
    for (int chunk = 0; chunk < most_chunks && !(format_ && data_offset_); ++chunk) {
      const auto header = bytes_at(place, 8);
      if (header.size() < 8) return;
      const uint64_t claimed = number_at<uint32_t>(header, 4);
      const bool is_format = word_is(header, 0, "fmt "), is_data = word_is(header, 0, "data");
      const bool is_ds64 = word_is(header, 0, "ds64");
      const uint64_t body = place + 8;
      uint64_t length = claimed;
      if (is_ds64 && has_64_bit_sizes_) read_long_sizes(body, length);
      if (is_format && !format_) read_format(body, length);
      if (is_data && !data_offset_) {
        if (claimed == unknown_size && long_data_size_) length = *long_data_size_;
        data_offset_ = body;
        data_size_ = length;
      }
      if (length > size() - body) {
        overrun_ = !is_data;
        return;
      }
      place = after(body, length);
    }
  }

  // A chunk of odd size is followed by one byte that does not count; some programs forget it.
  uint64_t after(uint64_t body, uint64_t length) {
    const uint64_t end = body + length;
    if (length % 2 == 0) return end;
    const auto next = bytes_at(end, 4);
    return word_is(next, 0, "fmt ") || word_is(next, 0, "data") ? end : end + 1;
  }

  void read_long_sizes(uint64_t body, uint64_t length) {
    const auto sizes = bytes_at(body, 16);
    if (length < 16 || sizes.size() < 16) return;
    const auto riff_size = number_at<uint64_t>(sizes, 0);
    riff_end_ = riff_size > ~uint64_t{8} ? riff_size : riff_size + 8;
    long_data_size_ = number_at<uint64_t>(sizes, 8);
  }

  void read_format(uint64_t body, uint64_t length) {
    const auto format = bytes_at(body, static_cast<size_t>(std::min<uint64_t>(length, 40)));
    if (length < 14) fail(AudioFault::not_audio, "its `fmt ` chunk is shorter than 14 bytes");
    if (format.size() < 14) fail(AudioFault::truncated, "it ends within its `fmt ` chunk");
    WavLayout layout;
    layout.format_tag = number_at<uint16_t>(format, 0);
    layout.channels = number_at<uint16_t>(format, 2);
    layout.sample_rate = number_at<uint32_t>(format, 4);
    const int64_t block = number_at<uint16_t>(format, 12);
    const int bits = format.size() >= 16 ? number_at<uint16_t>(format, 14) : 0;
    if (layout.format_tag == 0xFFFE && format.size() >= 40) {
      // KSDATAFORMAT_SUBTYPE_*: the tag, then the same 14 bytes for all.
      static constexpr unsigned char rest[14] = {0, 0, 0,    0, 0x10, 0,    0x80,
                                                 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71};
      if (std::memcmp(format.data() + 26, rest, sizeof rest) == 0) {
        layout.format_tag = number_at<uint16_t>(format, 24);
      }
    }
    layout.stored = stored_as(layout.format_tag, bits, block, layout.channels);
    layout.frame_bytes = bytes_of(layout.stored) * layout.channels;
    format_ = layout;
  }

  // Samples lie at the top of their container (20 bits in 24, 24 in 32), whose size the block
  // align tells; a block align of zero is as good as none.
  static StoredAs stored_as(int tag, int bits, int64_t block, int channels) {
    if (channels == 0 || bits == 0) return StoredAs::other;
    const int64_t container = block > 0 ? block / channels : (bits + 7) / 8;
    if (block > 0 && (block % channels != 0 || container * 8 < bits)) return StoredAs::other;
    if (tag == 1) {
      if (container == 1) return StoredAs::uint8;
      if (container == 2) return StoredAs::int16;
      if (container == 3) return StoredAs::int24;
      if (container == 4) return StoredAs::int32;
    }
    if (tag == 3 && container == 4 && bits == 32) return StoredAs::float32;
    if (tag == 3 && container == 8 && bits == 64) return StoredAs::float64;
    if (tag == 6 && container == 1 && bits == 8) return StoredAs::alaw;
    if (tag == 7 && container == 1 && bits == 8) return StoredAs::mulaw;
    return StoredAs::other;
  }

  void place_data(WavLayout& layout) const {
    const uint64_t there = size() - *data_offset_;
    // Zero is honest when the size of the whole is right too.
    const bool really_none = data_size_ == 0 && riff_end_ + 1 >= size() && riff_end_ <= size();
    const bool to_the_end =
        written_to_a_pipe(data_size_) && !really_none && (data_size_ == 0 || data_size_ > there);
    const uint64_t claimed = to_the_end ? there : data_size_;
    const auto frame = static_cast<uint64_t>(std::max<int64_t>(layout.frame_bytes, 1));
    if (claimed / frame > there / frame) {
      fail(AudioFault::truncated,
           fmt::format("its header promises {} bytes of samples, {} are there", claimed, there));
    }
    layout.data_bytes = static_cast<int64_t>(std::min(claimed, there));
  }

  ByteSource& source_;
  std::span<const std::byte> head_;
  std::array<std::byte, 64> more_{};
  bool has_64_bit_sizes_ = false, overrun_ = false;
  uint64_t riff_end_ = 0, data_size_ = 0;
  std::optional<uint64_t> long_data_size_, data_offset_;
  std::optional<WavLayout> format_;
};

}  // namespace

bool is_wav(std::span<const std::byte> head) {
  const bool riff =
      word_is(head, 0, "RIFF") || word_is(head, 0, "RF64") || word_is(head, 0, "BW64");
  return riff && (head.size() < 12 || word_is(head, 8, "WAVE"));
}

WavLayout parse_wav(ByteSource& source, std::span<const std::byte> head) {
  return WavParser(source, head).parse();
}

}  // namespace tandem
