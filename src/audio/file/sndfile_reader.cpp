#include "audio/file/sndfile_reader.h"

#include <fmt/format.h>
#include <sndfile.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

#include "audio/file/aiff_claim.h"
#include "audio/file/claims.h"
#include "audio/file/samples.h"
#include "audio/file/source_stream.h"

namespace tandem {
namespace {

SourceStream& stream_of(void* user) { return *static_cast<SourceStream*>(user); }

sf_count_t stream_size(void* user) { return stream_of(user).source->size(); }

sf_count_t stream_seek(sf_count_t offset, int whence, void* user) {
  SourceStream& stream = stream_of(user);
  const int64_t from = whence == SEEK_SET   ? 0
                       : whence == SEEK_CUR ? stream.place
                                            : stream.source->size();
  int64_t place = 0;
  if (__builtin_add_overflow(from, offset, &place) || place < 0) return -1;
  return stream.place = place;
}

sf_count_t stream_read(void* into, sf_count_t count, void* user) {
  SourceStream& stream = stream_of(user);
  if (count <= 0 || stream.failure) return 0;
  try {
    const int64_t got = stream.source->read_at(
        stream.place, {static_cast<std::byte*>(into), static_cast<size_t>(count)});
    stream.place += got;
    return got;
  } catch (...) {
    stream.failure = std::current_exception();
    return 0;
  }
}

sf_count_t stream_write(const void*, sf_count_t, void*) { return 0; }

sf_count_t stream_tell(void* user) { return stream_of(user).place; }

// "flac", "mp3", "ogg opus", "aiff pcm16": the kind of samples where the format leaves it open.
std::string format_name(int format) {
  const auto container = [&] {
    switch (format & SF_FORMAT_TYPEMASK) {
      case SF_FORMAT_WAV:
      case SF_FORMAT_WAVEX: return "wav";
      case SF_FORMAT_RF64: return "rf64";
      case SF_FORMAT_W64: return "w64";
      case SF_FORMAT_AIFF: return "aiff";
      case SF_FORMAT_FLAC: return "flac";
      case SF_FORMAT_OGG: return "ogg";
      case SF_FORMAT_CAF: return "caf";
      case SF_FORMAT_AU: return "au";
      case SF_FORMAT_NIST: return "nist sphere";
      default: return "other";
    }
  }();
  const auto samples = [&] {
    switch (format & SF_FORMAT_SUBMASK) {
      case SF_FORMAT_PCM_S8:
      case SF_FORMAT_PCM_U8: return "pcm8";
      case SF_FORMAT_PCM_16: return "pcm16";
      case SF_FORMAT_PCM_24: return "pcm24";
      case SF_FORMAT_PCM_32: return "pcm32";
      case SF_FORMAT_FLOAT: return "float32";
      case SF_FORMAT_DOUBLE: return "float64";
      case SF_FORMAT_ALAW: return "alaw";
      case SF_FORMAT_ULAW: return "mulaw";
      case SF_FORMAT_VORBIS: return "vorbis";
      case SF_FORMAT_OPUS: return "opus";
      default: return "compressed";
    }
  }();
  if ((format & SF_FORMAT_TYPEMASK) == SF_FORMAT_FLAC) return container;
  return fmt::format("{} {}", container, samples);
}

bool stores_plain_samples(int format) {  // FLAC says so too
  switch (format & SF_FORMAT_SUBMASK) {
    case SF_FORMAT_PCM_S8:
    case SF_FORMAT_PCM_U8:
    case SF_FORMAT_PCM_16:
    case SF_FORMAT_PCM_24:
    case SF_FORMAT_PCM_32:
    case SF_FORMAT_FLOAT:
    case SF_FORMAT_DOUBLE:
    case SF_FORMAT_ALAW:
    case SF_FORMAT_ULAW: return true;
    default: return false;
  }
}

struct Closer {
  void operator()(SNDFILE* file) const { sf_close(file); }
};
using Handle = std::unique_ptr<SNDFILE, Closer>;

Handle open_stream(SourceStream& stream, SF_INFO& opened) {
  static SF_VIRTUAL_IO calls = {.get_filelen = stream_size,
                                .seek = stream_seek,
                                .read = stream_read,
                                .write = stream_write,
                                .tell = stream_tell};
  stream.place = 0;
  opened = {};
  Handle file(sf_open_virtual(&calls, SFM_READ, &opened, &stream));
  stream.rethrow();
  return file;
}

class SndfileFile final : public AudioFile {
 public:
  SndfileFile(std::unique_ptr<SourceStream> stream, Handle file, const SF_INFO& opened,
              const AudioLimits& limits)
      : stream_(std::move(stream)), file_(std::move(file)) {
    info_ = {.frames = opened.frames,
             .channels = opened.channels,
             .sample_rate = opened.samplerate,
             .format = format_name(opened.format)};
    seeks_rightly_ = stores_plain_samples(opened.format);
    check_length(info_, name(), limits);
  }

  void read_mono(int64_t first, int64_t count, float* out) override {
    check_part(info_, first, count, name());
    if (count == 0) return;
    if (first != next_) move_to(first);
    next_ = -1;  // until the part is read, where libsndfile stands is not certain
    for (int64_t done = 0; done < count;) {
      done += read_block(first + done, count - done, out + done);
    }
    next_ = first + count;
  }

 private:
  const std::string& name() const { return stream_->source->name(); }

  // In OGG, libsndfile (1.2.0 to 1.2.2) lands up to some hundred frames beside where a seek should
  // go, or finds nothing there, as it does in GSM: such files are read through.
  void move_to(int64_t frame) {
    if (seeks_rightly_) {
      const bool there = sf_seek(file_.get(), frame, SEEK_SET) == frame;
      stream_->rethrow();
      if (!there) throw_cut_short(name(), frame, info_.frames);
      return;
    }
    if (next_ < 0 || next_ > frame) {
      SF_INFO opened = {};
      file_.reset();
      file_ = open_stream(*stream_, opened);
      if (!file_) throw_cut_short(name(), 0, info_.frames);
      next_ = 0;
    }
    const auto block = block_of_this_thread();
    const int64_t most = static_cast<int64_t>(block.size()) / info_.channels;
    while (next_ < frame) {
      const int64_t got = sf_readf_float(file_.get(), block.data(), std::min(most, frame - next_));
      stream_->rethrow();
      if (got <= 0) throw_cut_short(name(), std::exchange(next_, -1), info_.frames);
      next_ += got;
    }
  }

  int64_t read_block(int64_t frame, int64_t wanted, float* out) {
    const bool mono = info_.channels == 1;
    const auto block = block_of_this_thread();
    if (!mono) wanted = std::min(wanted, static_cast<int64_t>(block.size()) / info_.channels);
    float* const into = mono ? out : block.data();
    const int64_t got = sf_readf_float(file_.get(), into, wanted);
    stream_->rethrow();
    if (sf_error(file_.get()) != SF_ERR_NO_ERROR) {
      throw AudioError(AudioFault::truncated, fmt::format("{} is damaged near frame {}: {}", name(),
                                                          frame, sf_strerror(file_.get())));
    }
    if (got <= 0) throw_cut_short(name(), frame, info_.frames);
    const std::span result(out, static_cast<size_t>(got));
    const bool finite = mono ? all_finite(result)
                             : mix_to_mono(StoredAs::float32, reinterpret_cast<std::byte*>(into),
                                           info_.channels, result);
    if (!finite) throw_not_finite(name(), frame, got);
    return got;
  }

  std::unique_ptr<SourceStream> stream_;  // libsndfile keeps its address: outlives file_
  Handle file_;
  bool seeks_rightly_ = false;
  int64_t next_ = 0;  // the frame libsndfile would read next; -1: not known
};

[[noreturn]] void throw_truncated(const ByteSource& source, const std::string& why) {
  throw AudioError(AudioFault::truncated, fmt::format("{} is cut short: {}", source.name(), why));
}

// Frames of a file that does not say how many it has (FLAC written to a pipe), by decoding it.
int64_t count_frames(SNDFILE* file, const SF_INFO& opened, const AudioLimits& limits) {
  const auto block = block_of_this_thread();
  const int64_t frames_a_block = static_cast<int64_t>(block.size()) / opened.channels;
  int64_t frames = 0;
  while (static_cast<double>(frames) <= limits.max_seconds * opened.samplerate) {
    const int64_t got = sf_readf_float(file, block.data(), frames_a_block);
    if (got <= 0) break;
    frames += got;
  }
  return sf_seek(file, 0, SEEK_SET) == 0 ? frames : 0;
}

constexpr int64_t unknown_frames = SF_COUNT_MAX;

}  // namespace

std::unique_ptr<AudioFile> open_with_sndfile(const std::shared_ptr<ByteSource>& source,
                                             const AudioLimits& limits) {
  auto stream = std::make_unique<SourceStream>();
  stream->source = source;
  SF_INFO opened = {};
  Handle file = open_stream(*stream, opened);
  if (!file) return nullptr;
  check_format(opened.channels, opened.samplerate, source->name(), limits);
  const int type = opened.format & SF_FORMAT_TYPEMASK;
  if (type == SF_FORMAT_AIFF && frames_claimed_by_aiff(*source) > opened.frames) {
    throw_truncated(*source, fmt::format("{} frames are there, its header promises {}",
                                         opened.frames, frames_claimed_by_aiff(*source)));
  }
  if (opened.frames == unknown_frames) {
    if (type == SF_FORMAT_OGG) throw_truncated(*source, "its last page is missing");
    opened.frames = count_frames(file.get(), opened, limits);
    stream->rethrow();
  }
  return std::make_unique<SndfileFile>(std::move(stream), std::move(file), opened, limits);
}

}  // namespace tandem
