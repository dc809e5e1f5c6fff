#include "audio/file/mpeg_reader.h"

#include <fmt/format.h>
#include <mpg123.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <vector>

#include "audio/file/claims.h"
#include "audio/file/mpeg_tag.h"
#include "audio/file/samples.h"
#include "audio/file/source_stream.h"

namespace tandem {
namespace {

// A frame of layer III may build on 511 bytes before it, which are 10 frames at the lowest rates.
constexpr long frames_before = 12;

ssize_t stream_read(void* user, void* into, size_t count) {
  auto& stream = *static_cast<SourceStream*>(user);
  if (stream.failure) return -1;
  try {
    const int64_t got =
        stream.source->read_at(stream.place, {static_cast<std::byte*>(into), count});
    stream.place += got;
    return got;
  } catch (...) {
    stream.failure = std::current_exception();
    return -1;
  }
}

off_t stream_seek(void* user, off_t offset, int whence) {
  auto& stream = *static_cast<SourceStream*>(user);
  const int64_t from = whence == SEEK_SET   ? 0
                       : whence == SEEK_CUR ? stream.place
                                            : stream.source->size();
  int64_t place = 0;
  if (__builtin_add_overflow(from, offset, &place) || place < 0) return -1;
  return stream.place = place;
}

struct Closer {
  void operator()(mpg123_handle* handle) const { mpg123_delete(handle); }
};

class MpegFile final : public AudioFile {
 public:
  explicit MpegFile(std::shared_ptr<ByteSource> source) { stream_.source = std::move(source); }

  // False when libmpg123 finds no sound.
  bool open(bool length_known, const AudioLimits& limits) {
    handle_.reset(mpg123_new(nullptr, nullptr));
    mpg123_handle* const handle = handle_.get();
    if (handle == nullptr) throw std::bad_alloc();
    mpg123_param(handle, MPG123_ADD_FLAGS, MPG123_QUIET | MPG123_FORCE_FLOAT | MPG123_GAPLESS, 0);
    mpg123_param(handle, MPG123_REMOVE_FLAGS, MPG123_AUTO_RESAMPLE | MPG123_FUZZY, 0);
    mpg123_param(handle, MPG123_PREFRAMES, frames_before, 0);
    mpg123_replace_reader_handle(handle, stream_read, stream_seek, nullptr);
    long rate = 0;
    int channels = 0, encoding = 0;
    const bool sound = mpg123_open_handle(handle, &stream_) == MPG123_OK &&
                       mpg123_getformat(handle, &rate, &channels, &encoding) == MPG123_OK;
    stream_.rethrow();
    if (!sound || encoding != MPG123_ENC_FLOAT_32) return false;
    check_format(channels, rate, name(), limits);
    // Goes over the headers of all frames; without it the length is an estimate.
    if (!length_known && mpg123_scan(handle) != MPG123_OK) return false;
    stream_.rethrow();
    info_ = {.frames = mpg123_length(handle),
             .channels = channels,
             .sample_rate = static_cast<int>(rate),
             .format = "mp3"};
    check_length(info_, name(), limits);
    return true;
  }

  void read_mono(int64_t first, int64_t count, float* out) override {
    check_part(info_, first, count, name());
    if (count == 0) return;
    if (first != next_) {
      const bool there = mpg123_seek(handle_.get(), first, SEEK_SET) == first;
      stream_.rethrow();
      if (!there) throw_cut_short(name(), first, info_.frames);
    }
    next_ = -1;  // until the part is read
    for (int64_t done = 0; done < count;) {
      done += read_block(first + done, count - done, out + done);
    }
    next_ = first + count;
  }

 private:
  const std::string& name() const { return stream_.source->name(); }

  int64_t read_block(int64_t frame, int64_t wanted, float* out) {
    const auto block = block_of_this_thread();
    const auto channels = static_cast<size_t>(info_.channels);
    const size_t frames = std::min(static_cast<size_t>(wanted), block.size() / channels);
    const size_t frame_bytes = channels * sizeof(float);
    size_t got = 0;
    const int result = mpg123_read(handle_.get(), block.data(), frames * frame_bytes, &got);
    stream_.rethrow();
    const size_t whole = got / frame_bytes;
    if (whole == 0) {
      if (result == MPG123_DONE) throw_cut_short(name(), frame, info_.frames);
      throw AudioError(AudioFault::truncated,
                       fmt::format("{} is damaged near frame {}: {}", name(), frame,
                                   result == MPG123_NEW_FORMAT ? "its format changes"
                                                               : mpg123_strerror(handle_.get())));
    }
    const std::span mono(out, whole);
    if (!mix_to_mono(StoredAs::float32, reinterpret_cast<std::byte*>(block.data()), info_.channels,
                     mono)) {
      throw_not_finite(name(), frame, static_cast<int64_t>(whole));
    }
    return static_cast<int64_t>(whole);
  }

  SourceStream stream_;  // libmpg123 keeps its address: outlives handle_
  std::unique_ptr<mpg123_handle, Closer> handle_;
  int64_t next_ = 0;  // the frame libmpg123 would read next; -1: not known
};

}  // namespace

std::unique_ptr<AudioFile> open_mpeg(std::shared_ptr<ByteSource> source,
                                     const AudioLimits& limits) {
  const auto tag = find_mpeg_tag(*source);
  if (!tag) return nullptr;
  if (tag->missing_bytes > 0) {
    throw AudioError(AudioFault::truncated,
                     fmt::format("{} is cut short: {} of the bytes its header promises are missing",
                                 source->name(), tag->missing_bytes));
  }
  auto file = std::make_unique<MpegFile>(std::move(source));
  if (!file->open(tag->tells_length, limits)) return nullptr;
  return file;
}

}  // namespace tandem
