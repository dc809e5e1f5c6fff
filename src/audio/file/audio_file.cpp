#include "audio/file/audio_file.h"

#include <array>

#include "audio/file/byte_source.h"
#include "audio/file/claims.h"
#include "audio/file/content.h"
#include "audio/file/ffmpeg_reader.h"
#include "audio/file/mpeg_reader.h"
#include "audio/file/sndfile_reader.h"
#include "audio/file/wav_reader.h"

namespace tandem {

std::unique_ptr<AudioFile> open_audio(const AudioSource& source, const OpenOptions& options) {
  auto slice = std::make_shared<FileSlice>(source);
  // One page holds the header of nearly every file.
  std::array<std::byte, 4096> first;
  const auto got = static_cast<size_t>(slice->read_at(0, first));
  const auto head = std::span<const std::byte>(first).first(got);
  if (head.empty()) {
    throw AudioError(AudioFault::empty, slice->name() + " is empty: it has no bytes");
  }
  const Content content = recognise(head, source.path);
  switch (content.reader) {
    case Reader::wav: {
      const WavLayout layout = parse_wav(*slice, head);
      if (options.native && layout.stored != StoredAs::other) {
        return open_wav(slice, layout, options.limits);
      }
      check_format(layout.channels, layout.sample_rate, slice->name(), options.limits);
      if (auto file = open_with_sndfile(slice, options.limits)) return file;
      break;
    }
    case Reader::mpeg:
      if (auto file = open_mpeg(slice, options.limits)) return file;
      [[fallthrough]];  // an ID3 tag also stands before FLAC
    case Reader::sndfile:
      if (auto file = open_with_sndfile(slice, options.limits)) return file;
      if (!content.ffmpeg_may_know) {
        throw AudioError(AudioFault::not_audio, slice->name() + " begins like " + content.name +
                                                    ", but cannot be read as that: it is damaged");
      }
      break;
    case Reader::ffmpeg: break;
    case Reader::none:
      throw AudioError(AudioFault::not_audio,
                       slice->name() + " is not audio: its bytes begin like no format we know");
  }
  return open_with_ffmpeg(*slice, content, {.limits = options.limits});
}

}  // namespace tandem
