#include "data/corpus/scan.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "data/corpus/clip_text.h"
#include "data/corpus/parallel_rows.h"
#include "tandem/error.h"
#include "util/signals.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void stop_when_asked(int64_t done, int64_t total) {
  const StopRequest request = stop_requested();
  if (request == StopRequest::none) return;
  throw Error(request == StopRequest::interrupted ? ErrorKind::interrupted : ErrorKind::terminated,
              fmt::format("stopped after {} of {} clips; the same command goes on from there", done,
                          total));
}

// A fault that a look at the same bytes would find again; others may be gone next time.
bool lies_in_content(AudioFault fault) {
  return fault == AudioFault::empty || fault == AudioFault::truncated ||
         fault == AudioFault::not_finite;
}

class SoundScan {
 public:
  SoundScan(const Dataset& dataset, const ScanOptions& options)
      : root_(dataset.layout.root), options_(options) {}

  void look_at(const FoundClip& found, ScannedClip& out) {
    out.clip = found.clip;
    const std::string path = (root_ / found.clip.path).string();
    struct stat status = {};
    if (::stat(path.c_str(), &status) != 0) {
      const bool missing = errno == ENOENT || errno == ENOTDIR;
      out.reason = missing ? DropReason::missing : DropReason::unreadable;
      out.detail = missing ? "no such file" : std::strerror(errno);
      return;
    }
    if (!S_ISREG(status.st_mode)) {  // opening a pipe would wait for ever
      out.reason = DropReason::unreadable;
      out.detail = "not a plain file";
      return;
    }
    const bool member = found.clip.offset > 0;
    if (!member) out.clip.bytes = status.st_size;
    out.clip.modified = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    out.sound.key = {found.clip.path, found.clip.offset, found.start,
                     found.seconds,   out.clip.bytes,    out.clip.modified};
    if (!reuse(out)) hear({path, found.clip.offset, member ? out.clip.bytes : -1}, found, out);
    fill(out);
  }

  int64_t reused() const { return reused_; }

 private:
  bool wants_decoding(const SoundFacts& facts) const {
    return !options_.quick && facts.seconds() <= options_.limits.max_seconds;
  }

  bool reuse(ScannedClip& out) {
    const JournalRecord* known = options_.journal ? options_.journal->find(out.sound.key) : nullptr;
    if (!known) return false;
    const bool enough = known->fault >= 0 || known->facts.decoded || !wants_decoding(known->facts);
    if (!enough) return false;
    out.sound = *known;
    ++reused_;
    return true;
  }

  void hear(const AudioSource& source, const FoundClip& found, ScannedClip& out) {
    try {
      out.sound.facts = listen(source, {.decode = !options_.quick,
                                        .decode_at_most = options_.limits.max_seconds,
                                        .start = found.start,
                                        .seconds = found.seconds});
    } catch (const AudioError& error) {
      out.reason = reason_of(error.fault());
      out.detail = error.what();
      if (!lies_in_content(error.fault())) return;
      out.sound.fault = static_cast<int32_t>(error.fault());
      out.sound.detail = error.what();
    } catch (const Error& error) {
      out.reason = DropReason::unreadable;
      out.detail = error.what();
      return;
    }
    if (options_.journal) options_.journal->add(out.sound);
  }

  static void fill(ScannedClip& out) {
    const SoundFacts& facts = out.sound.facts;
    if (out.sound.fault >= 0) {
      out.reason = reason_of(static_cast<AudioFault>(out.sound.fault));
      out.detail = out.sound.detail;
    }
    out.clip.frames = facts.frames;
    out.clip.first_frame = facts.first_frame;
    out.clip.part = facts.part;
    out.clip.sample_rate = facts.sample_rate;
    out.clip.channels = facts.channels;
    out.clip.fingerprint = facts.fingerprint;
  }

  fs::path root_;
  const ScanOptions& options_;
  std::atomic<int64_t> reused_ = 0;
};

void scan_sounds(const Dataset& dataset, const ScanOptions& options, int workers, Scan& scan) {
  const auto total = static_cast<int64_t>(dataset.clips.size());
  const auto start = Clock::now();
  SoundScan sounds(dataset, options);
  const auto look = [&](int64_t done) {
    if (options.journal) options.journal->flush();
    const double passed = std::max(1e-6, seconds_since(start));
    const double rate = static_cast<double>(done) / passed;
    if (options.on_progress) {
      options.on_progress({done, total, sounds.reused(), rate,
                           rate > 0 ? static_cast<double>(total - done) / rate : 0});
    }
    if (done < total) stop_when_asked(done, total);
  };
  const auto work = [&](int64_t row) {
    const auto at = static_cast<size_t>(row);
    sounds.look_at(dataset.clips[at], scan.clips[at]);
  };
  try {
    for_rows(total, workers, work, look);
  } catch (...) {
    if (options.journal) options.journal->flush();
    throw;
  }
  scan.reused = sounds.reused();
}

void scan_texts(const ScanOptions& options, int workers, Scan& scan) {
  const auto total = static_cast<int64_t>(scan.clips.size());
  const auto look = [&](int64_t done) {
    if (done < total) stop_when_asked(done, total);
  };
  const auto clip = [&](int64_t row) -> ScannedClip& {
    return scan.clips[static_cast<size_t>(row)];
  };
  for_rows(
      total, workers, [&](int64_t row) { clean_clip(clip(row)); }, look);
  std::shared_ptr<const Tokenizer> tokenizer;
  if (options.tokenizer) {
    std::vector<std::string> texts;
    for (const ScannedClip& scanned : scan.clips) {
      if (scanned.kept() && !scanned.cleaned_text.empty()) texts.push_back(scanned.cleaned_text);
    }
    tokenizer = options.tokenizer(texts);
  }
  scan.characters = tokenizer == nullptr;
  for_rows(
      total, workers, [&](int64_t row) { count_tokens(clip(row), tokenizer.get()); }, look);
}

}  // namespace

int64_t Scan::count(DropReason reason) const {
  if (reason == DropReason::bad_row) return static_cast<int64_t>(bad_rows.size());
  return std::count_if(clips.begin(), clips.end(),
                       [&](const ScannedClip& clip) { return clip.reason == reason; });
}

int64_t Scan::faults() const {
  const auto faulty = [](const ScannedClip& clip) { return is_fault(clip.reason); };
  return static_cast<int64_t>(bad_rows.size()) + std::count_if(clips.begin(), clips.end(), faulty);
}

std::vector<Clip> Scan::kept() const {
  std::vector<Clip> kept;
  for (const ScannedClip& scanned : clips) {
    if (scanned.kept()) kept.push_back(scanned.clip);
  }
  return kept;
}

Scan scan_corpus(const Dataset& dataset, const ScanOptions& options) {
  Scan scan;
  const auto start = Clock::now();
  scan.clips.resize(dataset.clips.size());
  scan.bad_rows = dataset.bad_rows;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int workers = options.workers > 0 ? options.workers : cores;
  scan_sounds(dataset, options, workers, scan);
  scan_texts(options, workers, scan);
  constexpr int default_tokens = 200, default_characters = 400;
  const int fallback = scan.characters ? default_characters : default_tokens;
  judge_clips(scan.clips, options.limits, options.limits.max_tokens.value_or(fallback));
  scan.seconds = seconds_since(start);
  return scan;
}

}  // namespace tandem
