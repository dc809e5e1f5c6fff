#include "audio/file/content.h"

#include <string_view>

#include "audio/file/wav_layout.h"
#include "util/text.h"

namespace tandem {
namespace {

struct Mark {
  size_t place;
  std::string_view bytes;
  Content content;
};

using namespace std::string_view_literals;

constexpr Mark marks[] = {
    {0, "fLaC"sv, {Reader::sndfile, "flac"}},
    {0, "OggS"sv, {Reader::sndfile, "ogg", true}},
    {0, "ID3"sv, {Reader::mpeg, "mp3", true}},
    {8, "AIFF"sv, {Reader::sndfile, "aiff"}},
    {8, "AIFC"sv, {Reader::sndfile, "aiff", true}},
    {0, "RIFX"sv, {Reader::sndfile, "wav"}},
    {0, "riff\x2E\x91\xCF\x11"sv, {Reader::sndfile, "w64"}},
    {0, "caff"sv, {Reader::sndfile, "caf", true}},
    {0, ".snd"sv, {Reader::sndfile, "au"}},
    {0, "NIST_1A"sv, {Reader::sndfile, "nist sphere"}},
    {4, "ftyp"sv, {Reader::ffmpeg, "mp4"}},
    {4, "moov"sv, {Reader::ffmpeg, "mp4"}},
    {4, "mdat"sv, {Reader::ffmpeg, "mp4"}},
    {0, "\x1A\x45\xDF\xA3"sv, {Reader::ffmpeg, "webm"}},
    {0, "\x30\x26\xB2\x75\x8E\x66\xCF\x11"sv, {Reader::ffmpeg, "wma"}},
    {8, "AVI "sv, {Reader::ffmpeg, "avi"}},
    {0, "FLV\x01"sv, {Reader::ffmpeg, "flv"}},
    {0, "#!AMR"sv, {Reader::ffmpeg, "amr"}},
    {0, "ADIF"sv, {Reader::ffmpeg, "aac"}},
    {0, "MAC "sv, {Reader::ffmpeg, "ape"}},
    {0, "wvpk"sv, {Reader::ffmpeg, "wavpack"}},
    {0, "TTA1"sv, {Reader::ffmpeg, "tta"}},
    {0, "tBaK"sv, {Reader::ffmpeg, "tak"}},
    {0, "MPCK"sv, {Reader::ffmpeg, "musepack"}},
    {0, "\x0B\x77"sv, {Reader::ffmpeg, "ac3"}},
};

bool has(std::string_view head, const Mark& mark) {
  return head.size() >= mark.place && head.substr(mark.place).starts_with(mark.bytes);
}

// A frame of MPEG audio begins with 11 ones (AAC with 12), version, layer, then rates of which some
// are reserved. Layer 0 with 12 ones is AAC.
Content mpeg_frame(std::string_view head) {
  if (head.size() < 4) return {};
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(head[i]); };
  if (byte(0) != 0xFF || (byte(1) & 0xE0) != 0xE0) return {};
  const int version = byte(1) >> 3 & 3, layer = byte(1) >> 1 & 3;
  if ((byte(1) & 0xF6) == 0xF0) return {Reader::ffmpeg, "aac"};
  const bool reserved = version == 1 || layer == 0 || byte(2) >> 4 == 15 || (byte(2) >> 2 & 3) == 3;
  return reserved ? Content{} : Content{Reader::mpeg, "mp3", true};
}

}  // namespace

Content recognise(std::span<const std::byte> head, const std::string& path) {
  if (is_wav(head)) return {Reader::wav, "wav", true};
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  for (const Mark& mark : marks) {
    if (has(text, mark)) return mark.content;
  }
  const Content mpeg = mpeg_frame(text);
  if (mpeg.reader != Reader::none) return mpeg;
  if (lower(path).ends_with(".g722")) return {Reader::ffmpeg, "g722"};
  return {};
}

}  // namespace tandem
