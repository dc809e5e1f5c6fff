#include "audio/file/ffmpeg_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "audio/file/claims.h"
#include "audio/file/wav_layout.h"
#include "util/child_process.h"

namespace tandem {
namespace {

constexpr const char* input_name = "file:/dev/fd/3";

class DecodedFile final : public AudioFile {
 public:
  DecodedFile(AudioInfo info, std::vector<float> samples, std::string name)
      : samples_(std::move(samples)), name_(std::move(name)) {
    info_ = std::move(info);
  }
  void read_mono(int64_t first, int64_t count, float* out) override {
    check_part(info_, first, count, name_);
    std::copy_n(samples_.begin() + first, count, out);
  }

 private:
  std::vector<float> samples_;
  std::string name_;
};

// The program gets the open file itself: no character of its name can mean anything to it, and the
// protocols it may use let it reach nothing else (playlists inside files name other files and
// hosts). Channels stay apart, for its own mix is no plain mean.
std::vector<std::string> command_for(const FileSlice& source, const Content& content,
                                     const std::string& program) {
  std::vector<std::string> words = {
      program, "-nostdin", "-hide_banner",        "-loglevel",
      "error", "-xerror",  "-protocol_whitelist", "file,subfile,pipe"};
  if (std::string_view(content.name) == "g722") words.insert(words.end(), {"-f", "g722"});
  words.push_back("-i");
  words.push_back(source.whole_file()
                      ? input_name
                      : fmt::format("subfile,,start,{},end,{},,:{}", source.offset(),
                                    source.offset() + source.size(), input_name));
  words.insert(words.end(), {"-map", "0:a:0", "-map_metadata", "-1", "-c:a", "pcm_f32le",
                             "-bitexact", "-f", "wav", "pipe:1"});
  return words;
}

// Without what only its makers understand: "[aac @ 0x55...] ", and the name it got for the file.
std::string plain(std::string words) {
  if (words.starts_with('[')) words.erase(0, words.find("] ") + 2);
  if (words.starts_with(input_name)) words.erase(0, std::strlen(input_name) + 2);
  return words.empty() ? "it did not say why" : words;
}

// Samples in the WAV form ffmpeg streams, mixed as they come: a header, then frames that reads cut
// anywhere.
class StreamedWav {
 public:
  StreamedWav(const std::string& name, const AudioLimits& limits) : name_(name), limits_(limits) {}

  void take(std::span<const std::byte> bytes) {
    pending_.insert(pending_.end(), bytes.begin(), bytes.end());
    if (layout_.frame_bytes == 0 && pending_.size() >= head_bytes) read_header();
    if (layout_.frame_bytes > 0) mix();
  }

  // False when there never was a header.
  bool finish() {
    if (layout_.frame_bytes == 0 && !pending_.empty()) read_header();
    if (layout_.frame_bytes > 0) mix();
    return layout_.frame_bytes > 0;
  }

  AudioInfo info(const char* format) const {
    return {.frames = static_cast<int64_t>(samples_.size()),
            .channels = layout_.channels,
            .sample_rate = static_cast<int>(layout_.sample_rate),
            .format = format};
  }
  std::vector<float> samples() && { return std::move(samples_); }

 private:
  static constexpr size_t head_bytes = 4096;

  void read_header() {
    if (!is_wav(pending_)) {
      throw AudioError(AudioFault::not_audio,
                       fmt::format("what ffmpeg makes of {} is no sound", name_));
    }
    MemoryBytes head(pending_, "the output of ffmpeg");
    layout_ = parse_wav(head, pending_);
    check_format(layout_.channels, layout_.sample_rate, name_, limits_);
    pending_.erase(pending_.begin(), pending_.begin() + layout_.data_offset);
  }

  void mix() {
    const size_t frame_bytes = static_cast<size_t>(layout_.frame_bytes);
    const size_t frames = pending_.size() / frame_bytes, before = samples_.size();
    const double most = limits_.max_seconds * static_cast<double>(layout_.sample_rate);
    if (static_cast<double>(before + frames) > most) {
      throw AudioError(AudioFault::too_long, fmt::format("{} is longer than the {:.0f} seconds "
                                                         "that are allowed",
                                                         name_, limits_.max_seconds));
    }
    samples_.resize(before + frames);
    if (!mix_to_mono(layout_.stored, pending_.data(), layout_.channels,
                     std::span(samples_).subspan(before))) {
      throw_not_finite(name_, static_cast<int64_t>(before), static_cast<int64_t>(frames));
    }
    const auto used = static_cast<std::ptrdiff_t>(frames * frame_bytes);
    pending_.erase(pending_.begin(), pending_.begin() + used);
  }

  const std::string& name_;
  const AudioLimits& limits_;
  WavLayout layout_;
  std::vector<std::byte> pending_;
  std::vector<float> samples_;
};

[[noreturn]] void throw_without_program(const FileSlice& source, const Content& content,
                                        const std::string& program) {
  AudioError error(AudioFault::not_audio,
                   fmt::format("{} begins like {}, which only the program `{}` can read here, and "
                               "that is not installed",
                               source.name(), content.name, program));
  error.hint("install it (Debian: apt install ffmpeg), or convert the file to WAV or FLAC");
  throw error;
}

}  // namespace

std::unique_ptr<AudioFile> open_with_ffmpeg(const FileSlice& source, const Content& content,
                                            const FfmpegOptions& options) {
  const double allowed =
      options.seconds_allowed > 0 ? options.seconds_allowed : 30 + options.limits.max_seconds / 20;
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                            std::chrono::duration<double>(std::min(allowed, 86400.0)));
  ChildProcess child(command_for(source, content, options.program),
                     {.input = source.descriptor(), .deadline = deadline});
  if (child.start_error() == ENOENT) throw_without_program(source, content, options.program);
  if (child.start_error() != 0) {
    throw AudioError(AudioFault::unreadable,
                     fmt::format("cannot start `{}` to read {}: {}", options.program, source.name(),
                                 std::strerror(child.start_error())));
  }

  StreamedWav wav(source.name(), options.limits);
  std::vector<std::byte> block(64 << 10);
  while (const size_t got = child.read(block)) wav.take(std::span(block).first(got));
  const int code = child.wait();
  if (child.timed_out()) {
    throw AudioError(AudioFault::unreadable,
                     fmt::format("{}: `{}` did not decode it within {:.0f} seconds", source.name(),
                                 options.program, allowed));
  }
  const bool any = wav.finish();
  // It does not count this, of WebM, as a failure.
  const bool cut = child.last_words().find("File ended prematurely") != std::string::npos;
  if (code != 0 || cut || !any) {
    const bool some = any && wav.info("").frames > 0;
    throw AudioError(some ? AudioFault::truncated : AudioFault::not_audio,
                     fmt::format("`{}` cannot decode {} as {}: {}", options.program, source.name(),
                                 content.name, plain(child.last_words())));
  }
  AudioInfo info = wav.info(content.name);
  check_length(info, source.name(), options.limits);
  return std::make_unique<DecodedFile>(std::move(info), std::move(wav).samples(), source.name());
}

}  // namespace tandem
