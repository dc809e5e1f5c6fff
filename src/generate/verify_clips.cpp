#include "generate/verify_clips.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "audio/file/channels.h"
#include "generate/clip_listing.h"
#include "generate/music_manifest.h"
#include "tandem/error.h"
#include "util/text.h"
#include "util/threads.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

constexpr const char* manifest_name = "manifest.jsonl";

struct Folders {
  fs::path run, sounds;
};

Folders folders_of(fs::path folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    throw Error(ErrorKind::io, fmt::format("there is no folder `{}`", folder.string()));
  if (!folder.has_filename()) folder = folder.parent_path();  // a slash at the end
  if (fs::is_directory(folder / "audio_samples", ignored))
    return {.run = folder, .sounds = folder / "audio_samples"};
  const fs::path above = fs::absolute(folder).parent_path();
  if (folder.filename() == "audio_samples" && read_clip_listing(above).there)
    return {.run = above, .sounds = folder};
  return {.run = folder, .sounds = folder};
}

// One clip with all that is wrong with it; belongs to one thread.
class Check {
 public:
  Check(VerifiedClip& clip, const ListedClip* listed, const ClipLimits& limits)
      : clip_(clip), listed_(listed), limits_(limits) {}

  std::vector<ClipFinding> findings;
  std::string checksum;  // empty when the file cannot be read
  bool silent = false;

  void run() {
    if (listed_ && listed_->status == "failed") {
      find("failed", listed_->error.empty() ? "the manifest says so" : listed_->error);
      return;
    }
    if (fs::path(clip_.file).filename() != clip_.file)
      return find("missing", "its name leaves the folder");
    std::error_code ignored;
    if (!fs::exists(clip_.path, ignored)) return find("missing", "there is no such file");
    if (!listed_) find("extra", "the manifest does not know it");
    checksum = file_checksum(clip_.path);
    if (listed_ && !listed_->checksum.empty() && checksum != listed_->checksum) {
      find("changed", fmt::format("its checksum is {}, the manifest's {}",
                                  checksum.empty() ? "unknown" : checksum, listed_->checksum));
    }
    try {
      const ChannelSound sound = read_channels(clip_.path.string());
      measure(sound);
    } catch (const Error& error) {
      find("unreadable", error.what());
    }
  }

 private:
  void find(const char* fault, std::string detail) {
    findings.push_back({.file = clip_.file, .fault = fault, .detail = std::move(detail)});
  }

  void measure(const ChannelSound& sound) {
    clip_.seconds = sound.info.seconds();
    clip_.channels = sound.info.channels;
    clip_.sample_rate = sound.info.sample_rate;
    clip_.signal = measure_signal(sound.channels, sound.info.sample_rate);
    clip_.measured = true;
    if (listed_) compare();
    const SignalFacts& signal = clip_.signal;
    if (signal.not_finite)
      find("not finite", fmt::format("{} NaN or infinite samples", signal.not_finite));
    silent = signal.silence > limits_.silence;
    if (silent) {
      find("silent", fmt::format("{:.0f} % of it is under -60 dBFS, the peak is {:.4f}",
                                 100 * signal.silence, signal.peak));
    }
    if (signal.full_scale > limits_.full_scale) {
      find("clipped",
           fmt::format("{:.1f} % of its samples are at full scale or beyond, the peak is "
                       "{:.2f}",
                       100 * signal.full_scale, signal.peak));
    }
    if (std::abs(signal.offset) > limits_.offset)
      find("offset", fmt::format("its mean is {:+.3f}", signal.offset));
  }

  void compare() {
    if (listed_->seconds && std::abs(*listed_->seconds - clip_.seconds) > limits_.length) {
      find("length", fmt::format("{:.3f} s of sound, {:.3f} s in the manifest", clip_.seconds,
                                 *listed_->seconds));
    }
    const int64_t rate = listed_->sample_rate.value_or(0), many = listed_->channels.value_or(0);
    if ((rate > 0 && rate != clip_.sample_rate) || (many > 0 && many != clip_.channels)) {
      find("format", fmt::format("{} Hz and {} channels, in the manifest {} and {}",
                                 clip_.sample_rate, clip_.channels, rate, many));
    }
  }

  VerifiedClip& clip_;
  const ListedClip* listed_;
  const ClipLimits& limits_;
};

void run_all(std::vector<Check>& checks, const VerifyOptions& options) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::condition_variable changed;
  size_t done = 0, ended = 0;
  std::exception_ptr failure;
  const auto work = [&] {
    enter_worker_thread("verify");
    for (size_t i = next++; i < checks.size(); i = next++) {
      std::exception_ptr mine;
      try {
        checks[i].run();
      } catch (...) {
        mine = std::current_exception();
      }
      std::lock_guard lock(mutex);
      ++done;
      if (mine && !failure) {
        failure = mine;
        next = checks.size();
      }
      changed.notify_one();
    }
    std::lock_guard lock(mutex);
    ++ended;
    changed.notify_one();
  };
  const size_t wanted = options.threads > 0 ? static_cast<size_t>(options.threads)
                                            : cpus_for_workers(allowed_cpus()).size();
  bool stopped = options.stop();
  if (stopped) next = checks.size();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < std::clamp<size_t>(wanted, 1, std::max<size_t>(1, checks.size())); ++i)
    threads.emplace_back(work);
  {
    std::unique_lock lock(mutex);
    size_t told = 0;
    while (ended < threads.size()) {
      changed.wait_for(lock, std::chrono::milliseconds(50));
      if (!stopped && options.stop()) {
        stopped = true;
        next = checks.size();
      }
      if (options.on_progress && done != told)
        options.on_progress(static_cast<int64_t>(told = done), static_cast<int64_t>(checks.size()));
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  if (stopped) throw Error(ErrorKind::interrupted, "interrupted; not all clips were looked at");
}

std::vector<ClipFinding> findings_of_listing(const ClipListing& listing) {
  std::vector<ClipFinding> findings;
  const auto find = [&](const char* fault, std::string detail) {
    findings.push_back({.file = manifest_name, .fault = fault, .detail = std::move(detail)});
  };
  if (!listing.there) find("missing", "without it nobody knows which clips should be here");
  if (!listing.parts.empty())
    find("unfinished", fmt::format("the run has not ended: {}", join(listing.parts, ", ")));
  if (!listing.finished && listing.parts.empty())
    find("unfinished", "run.json says that clips are still to be made");
  if (listing.bad_lines)
    find("unreadable", fmt::format("{} lines are no entries", listing.bad_lines));
  for (const std::string& file : listing.listed_twice)
    findings.push_back({.file = file, .fault = "twice", .detail = "several clips have this file"});
  return findings;
}

// What lies among the clips and is no sound by its name: what a killed copy left, for example.
void add_strangers(VerifyReport& report, const fs::path& sounds,
                   const std::set<std::string>& known) {
  std::set<std::string> strangers;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(sounds, ignored))
    strangers.insert(entry.path().filename().string());
  for (const VerifiedClip& clip : report.clips) strangers.erase(clip.file);
  for (const std::string& name : strangers) {
    if (!known.contains(name) && !name.starts_with("."))
      report.findings.push_back(
          {.file = name, .fault = "extra", .detail = "it is no clip and lies among them"});
  }
}

}  // namespace

int64_t VerifyReport::right() const {
  std::set<std::string> wrong;
  for (const ClipFinding& finding : findings) wrong.insert(finding.file);
  return std::ranges::count_if(
      clips, [&](const VerifiedClip& clip) { return clip.listed && !wrong.contains(clip.file); });
}

std::vector<fs::path> sounds_in(const fs::path& folder) {
  static const std::set<std::string> endings = {".wav",  ".flac", ".mp3",  ".ogg",
                                                ".opus", ".m4a",  ".aiff", ".aif"};
  std::vector<fs::path> sounds;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const fs::path& path = entry.path();
    if (path.filename().string().starts_with(".")) continue;
    if (endings.contains(lower(path.extension().string()))) sounds.push_back(path);
  }
  if (error) {
    throw Error(ErrorKind::io,
                fmt::format("cannot read the folder `{}`: {}", folder.string(), error.message()));
  }
  std::ranges::sort(sounds);
  return sounds;
}

VerifyReport verify_clips(const fs::path& folder, const VerifyOptions& options) {
  const Folders folders = folders_of(folder);
  const ClipListing listing = read_clip_listing(folders.run);
  VerifyReport report;
  report.folder = folders.run;
  report.listed = static_cast<int64_t>(listing.clips.size());
  report.findings = findings_of_listing(listing);
  std::set<std::string> known;
  for (const ListedClip& clip : listing.clips) {
    known.insert(clip.file);
    report.clips.push_back({.id = clip.id,
                            .text = clip.text,
                            .file = clip.file,
                            .path = folders.sounds / clip.file,
                            .listed = true});
  }
  for (const fs::path& path : sounds_in(folders.sounds)) {
    const std::string file = path.filename().string();
    if (!known.contains(file))
      report.clips.push_back({.id = path.stem().string(), .file = file, .path = path});
  }
  if (folders.sounds != folders.run) add_strangers(report, folders.sounds, known);
  if (!listing.there && report.clips.empty()) {
    throw Error(ErrorKind::data,
                fmt::format("`{}` holds neither manifest.jsonl nor sounds", folder.string()))
        .hint("give the run's folder, <data_dir>/<model>/<run_id>");
  }
  std::vector<Check> checks;
  for (size_t i = 0; i < report.clips.size(); ++i) {
    checks.emplace_back(report.clips[i], i < listing.clips.size() ? &listing.clips[i] : nullptr,
                        options.limits);
  }
  run_all(checks, options);
  std::map<std::string, std::string> first_of;  // file by checksum
  for (size_t i = 0; i < checks.size(); ++i) {
    Check& check = checks[i];
    if (!check.checksum.empty() && !check.silent) {
      const auto [other, first] = first_of.try_emplace(check.checksum, report.clips[i].file);
      if (!first) {
        check.findings.push_back({.file = report.clips[i].file,
                                  .fault = "twice",
                                  .detail = fmt::format("the same bytes as `{}`", other->second)});
      }
    }
    std::ranges::move(check.findings, std::back_inserter(report.findings));
  }
  return report;
}

}  // namespace tandem
