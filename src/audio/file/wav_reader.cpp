#include "audio/file/wav_reader.h"

#include <algorithm>
#include <vector>

#include "audio/file/claims.h"

namespace tandem {
namespace {

// Small enough to stay in the cache between reading and converting; a frame has at most 64 KiB.
constexpr int64_t block_bytes = 128 << 10;

std::span<std::byte> block_of_this_thread() {
  thread_local std::vector<std::byte> block(block_bytes);
  return block;
}

class WavFile final : public AudioFile {
 public:
  WavFile(std::shared_ptr<ByteSource> source, const WavLayout& layout, const AudioLimits& limits)
      : source_(std::move(source)), layout_(layout) {
    check_format(layout.channels, layout.sample_rate, source_->name(), limits);
    info_ = {.frames = layout.frames(),
             .channels = layout.channels,
             .sample_rate = static_cast<int>(layout.sample_rate),
             .format = std::string("wav ") + to_string(layout.stored),
             .native = true};
    check_length(info_, source_->name(), limits);
  }

  void read_mono(int64_t first, int64_t count, float* out) override {
    check_part(info_, first, count, source_->name());
    const auto block = block_of_this_thread();
    const int64_t frames_a_block = std::max<int64_t>(1, block_bytes / layout_.frame_bytes);
    for (int64_t done = 0; done < count;) {
      const int64_t frames = std::min(count - done, frames_a_block);
      const auto bytes = block.first(static_cast<size_t>(frames * layout_.frame_bytes));
      const int64_t frame = first + done;
      const int64_t got =
          source_->read_at(layout_.data_offset + frame * layout_.frame_bytes, bytes);
      if (got < static_cast<int64_t>(bytes.size())) {
        throw_cut_short(source_->name(), frame + got / layout_.frame_bytes, info_.frames);
      }
      const std::span mono(out + done, static_cast<size_t>(frames));
      if (!mix_to_mono(layout_.stored, bytes.data(), layout_.channels, mono)) {
        throw_not_finite(source_->name(), frame, frames);
      }
      done += frames;
    }
  }

 private:
  std::shared_ptr<ByteSource> source_;
  WavLayout layout_;
};

}  // namespace

std::unique_ptr<AudioFile> open_wav(std::shared_ptr<ByteSource> source, const WavLayout& layout,
                                    const AudioLimits& limits) {
  return std::make_unique<WavFile>(std::move(source), layout, limits);
}

}  // namespace tandem
