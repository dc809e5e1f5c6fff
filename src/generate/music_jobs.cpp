#include "generate/music_jobs.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "data/corpus/parallel_rows.h"
#include "generate/clip_writer.h"
#include "generate/music_manifest.h"
#include "generate/music_pool.h"
#include "generate/music_recipe.h"
#include "generate/music_shares.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/clock.h"
#include "util/threads.h"

namespace tandem {
namespace {

void check(const MusicPool& pool, const MusicJobOptions& options) {
  const auto refuse = [](const std::string& sentence) { throw Error(ErrorKind::usage, sentence); };
  if (pool.devices.empty()) refuse("there is no device to generate on");
  if (options.shards < 1 || options.shard < 0 || options.shard >= options.shards) {
    refuse(fmt::format("there is no shard {} of {}; expected 0 to {}", options.shard,
                       options.shards, options.shards - 1));
  }
  if (options.split != "queue" && options.split != "batch") {
    refuse(fmt::format("work cannot be split by `{}`; expected queue or batch", options.split));
  }
  if (options.format != "wav" && options.format != "wav16" && options.format != "flac") {
    refuse(fmt::format("clips cannot be written as `{}`; expected wav, wav16 or flac",
                       options.format));
  }
}

ClipJob prepared_job(const MusicJobOptions& options) {
  ClipJob job{.folder = options.folder, .shard = options.shard, .shards = options.shards};
  make_folder(job.sounds());
  return job;
}

class ClipRun {
 public:
  ClipRun(MusicPool& pool, const Captions& captions, const MusicJobOptions& options)
      : pool_(pool),
        captions_(captions),
        options_(options),
        recipes_(options),
        job_(prepared_job(options)),
        manifest_(job_) {
    for (size_t place = 0; place < captions.rows.size(); ++place) {
      if (static_cast<int64_t>(place) % options.shards == options.shard) rows_.push_back(place);
    }
    progress_.total = static_cast<int64_t>(rows_.size());
    progress_.devices.resize(pool.devices.size());
    if (!manifest_.locked()) {
      note(
          fmt::format("the file system of `{}` keeps no locks: let no other run make the same "
                      "clips there",
                      options.folder));
    }
    remove_leftovers();
  }

  MusicJobProgress run() {
    const std::vector<int64_t> limits = device_batches(options_.batch_size, pool_.devices.size());
    int64_t batch = 0;
    for (const int64_t limit : limits) batch += limit;
    if (options_.batch_size < batch) {
      note(fmt::format("a batch of {} does not reach {} devices; each makes one clip at a time",
                       options_.batch_size, limits.size()));
    }
    ClipShares shares({.limits = limits,
                       .gather = options_.split == "batch",
                       .ahead = options_.prefetch,
                       .total = progress_.total});
    ClipWriter writer({.folder = job_.sounds(),
                       .format = {.name = options_.format, .rate = pool_.rate},
                       .threads = options_.writers,
                       .capacity = static_cast<size_t>(2 * batch + 8),
                       .written = [&](ClipEntry entry) { record(entry); },
                       .failed = [&](std::exception_ptr why) { fail(shares, why); }});
    {
      MusicWorkers workers(shares, {.devices = pool_.devices,
                                    .make_engine = pool_.make_engine,
                                    .music = options_.music,
                                    .deliver =
                                        [&](PreparedClip clip, MusicClip made) {
                                          writer.put(std::move(clip.entry), std::move(made.sound));
                                        },
                                    .fail =
                                        [&](PreparedClip clip, const std::string& why) {
                                          record_failure(shares, std::move(clip.entry), why);
                                        },
                                    .note = [&](const std::string& sentence) { note(sentence); },
                                    .ended = [&](std::exception_ptr why) { fail(shares, why); }});
      std::vector<std::jthread> feeders;
      for (int64_t i = 0; i < std::max<int64_t>(1, options_.workers); ++i) {
        feeders.emplace_back([&] { feed(shares); });
      }
      watch(shares, workers, writer);
      workers.join();
      feeders.clear();
      writer.finish();
      measure(shares, workers, writer);
    }
    if (options_.on_progress) options_.on_progress(progress());
    conclude();
    return progress();
  }

 private:
  // Half-written files of a run that was killed. Other jobs may be writing into the folder: only
  // what this one would write is removed.
  void remove_leftovers() {
    if (options_.shards == 1) {
      FolderDraft::remove_leftovers(job_.folder);
      FolderDraft::remove_leftovers(job_.sounds());
      return;
    }
    std::set<std::string> own;
    const std::string ending = ClipFormat{.name = options_.format}.ending();
    for (const size_t place : rows_) own.insert(captions_.rows[place].name + ending);
    constexpr std::string_view mark = ".draft-";  // .draft-<process>-<file>
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(job_.sounds(), ignored)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with(mark)) continue;
      const size_t end = name.find('-', mark.size());
      if (end != std::string::npos && own.contains(name.substr(end + 1))) remove_tree(entry.path());
    }
  }

  void note(const std::string& sentence) {
    std::lock_guard lock(note_mutex_);
    if (options_.note) options_.note(sentence);
  }

  // The first failure ends the run.
  void fail(ClipShares& shares, std::exception_ptr why) {
    {
      std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::move(why);
    }
    shares.stop();
  }

  // A thread of the host: looks what is done, prepares the rest.
  void feed(ClipShares& shares) {
    enter_worker_thread("captions");
    try {
      for (size_t i = next_++; i < rows_.size(); i = next_++) {
        if (!prepare(shares, rows_[i])) return;
      }
    } catch (...) {
      fail(shares, std::current_exception());
    }
  }

  bool prepare(ClipShares& shares, size_t place) {
    const Caption& caption = captions_.rows[place];
    PreparedClip clip{.place = place, .request = {}, .entry = recipes_.planned(caption)};
    if (manifest_.whole({clip.entry.file, clip.entry.recipe})) {
      count([](MusicJobProgress& progress) { ++progress.skipped; });
      shares.pass_over();
      return true;
    }
    try {
      clip.request = request_of(caption, clip.entry.seed);
    } catch (const Error& error) {
      record_failure(shares, std::move(clip.entry), error.what());
      shares.pass_over();
      return true;
    }
    return shares.put(std::move(clip));
  }

  MusicRequest request_of(const Caption& caption, uint64_t seed) const {
    MusicRequest request{.text_ids = pool_.text_ids(caption.text), .seed = seed, .prompt = {}};
    const auto count = static_cast<int64_t>(request.text_ids.size());
    if (count > options_.music.longest_text) {
      throw Error(ErrorKind::data, fmt::format("the caption has {} ids; expected at most {}", count,
                                               options_.music.longest_text));
    }
    if (caption.audio_prompt.empty()) return request;
    if (!pool_.prompt_codes) {
      throw Error(ErrorKind::data, fmt::format("the audio prompt `{}` cannot be used: the model "
                                               "was loaded without its encoder",
                                               caption.audio_prompt));
    }
    request.prompt = pool_.prompt_codes(caption.audio_prompt);
    return request;
  }

  // On the caller's thread, while the others work.
  void watch(ClipShares& shares, MusicWorkers& workers, ClipWriter& writer) {
    constexpr auto pace = std::chrono::milliseconds(20);
    while (!over()) {
      if (options_.stop()) {
        stopped_ = true;
        shares.stop();
        break;
      }
      measure(shares, workers, writer);
      if (options_.on_progress) options_.on_progress(progress());
      std::this_thread::sleep_for(pace);
    }
  }
  bool over() {
    std::lock_guard lock(mutex_);
    return failure_ || progress_.done == progress_.total;
  }

  void measure(ClipShares& shares, MusicWorkers& workers, ClipWriter& writer) {
    const std::vector<DeviceWork> work = workers.work();
    std::lock_guard lock(mutex_);
    progress_.seconds = seconds_since(start_);
    progress_.waited_for_captions = shares.waited_seconds();
    progress_.waited_for_disk = writer.counters().put_wait;
    progress_.device_seconds = 0;
    for (size_t i = 0; i < work.size(); ++i) {
      progress_.device_seconds += work[i].busy_seconds;
      progress_.devices[i] = {.clips = work[i].clips,
                              .busy_seconds = work[i].busy_seconds,
                              .busy_share = work[i].busy_seconds / progress_.seconds,
                              .lost = work[i].lost};
    }
  }

  void record(const ClipEntry& entry) {
    manifest_.add(entry);
    bool first_clipped = false;
    count([&](MusicJobProgress& progress) {
      if (entry.status == "failed") ++progress.failed;
      progress.sound_seconds += entry.seconds;
      if (entry.clipped > 0) first_clipped = ++progress.clipped == 1;
    });
    if (first_clipped) {
      note(
          fmt::format("`{}` passes full scale: {} samples are cut off at it, as 16 bits hold no "
                      "more; generation.format=wav keeps them",
                      entry.file, entry.clipped));
    }
  }

  void record_failure(ClipShares& shares, ClipEntry entry, const std::string& sentence) {
    entry.status = "failed";
    entry.error = sentence;
    try {
      record(entry);
    } catch (...) {
      fail(shares, std::current_exception());
    }
  }

  template <class Change>
  void count(const Change& change) {
    std::lock_guard lock(mutex_);
    change(progress_);
    ++progress_.done;
  }

  MusicJobProgress progress() {
    std::lock_guard lock(mutex_);
    return progress_;
  }

  std::vector<WantedClip> wanted() {
    std::vector<WantedClip> clips(captions_.rows.size());
    for_rows(
        static_cast<int64_t>(clips.size()),
        static_cast<int>(std::max<int64_t>(1, options_.workers)),
        [&](int64_t row) {
          const auto place = static_cast<size_t>(row);
          ClipEntry entry = recipes_.planned(captions_.rows[place]);
          clips[place] = {std::move(entry.file), std::move(entry.recipe)};
        },
        [](int64_t) {});
    return clips;
  }

  void conclude() {
    const bool alone = options_.shards == 1;
    if (failure_) {
      try {
        if (alone) manifest_.merge(captions_, wanted(), /*partly=*/true);
      } catch (const Error&) {
        // The failure that came first is the one to tell.
      }
      std::rethrow_exception(failure_);
    }
    const bool merged = manifest_.merge(captions_, wanted(), /*partly=*/alone);
    const MusicJobProgress now = progress();
    if (stopped_ && now.done < now.total) {
      throw Error(ErrorKind::interrupted, fmt::format("interrupted after {} of {} clips; they are "
                                                      "in `{}`",
                                                      now.done, now.total, options_.folder))
          .hint("the same command goes on from there");
    }
    {
      std::lock_guard lock(mutex_);
      progress_.merged = merged;
    }
  }

  MusicPool& pool_;
  const Captions& captions_;
  const MusicJobOptions& options_;
  ClipRecipes recipes_;
  ClipJob job_;
  ClipManifest manifest_;
  std::vector<size_t> rows_;  // of this shard, as places in `captions_`
  std::atomic<size_t> next_{0};
  const Clock::time_point start_ = Clock::now();
  bool stopped_ = false;  // of the caller's thread
  std::mutex note_mutex_;
  std::mutex mutex_;  // guards what follows
  MusicJobProgress progress_;
  std::exception_ptr failure_;
};

}  // namespace

MusicJobProgress generate_clips(MusicPool& pool, const Captions& captions,
                                const MusicJobOptions& options) {
  check(pool, options);
  return ClipRun(pool, captions, options).run();
}

}  // namespace tandem
