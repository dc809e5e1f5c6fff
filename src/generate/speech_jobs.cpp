#include "generate/speech_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "audio/file/write_audio.h"
#include "generate/manifest.h"
#include "generate/voice_store.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/bounded_queue.h"
#include "util/counted_random.h"
#include "util/text.h"

namespace tandem {
namespace {

struct Spoken {
  size_t line = 0;
  ManifestEntry entry;
  std::future<Speech> speech;
};

// Everything but text, language and voice that decides a line's sound.
std::string options_recipe(const SpeechText& options, const std::string& model) {
  std::string text = model;
  const auto add = [&](const auto& value) { text += fmt::format("\n{}", value); };
  const auto add_if = [&](const auto& value) { value ? add(*value) : add("-"); };
  add_if(options.temperature);
  add_if(options.repetition_penalty);
  add_if(options.top_p);
  add_if(options.top_k);
  add_if(options.enable_text_splitting);
  add(options.do_sample);
  add(options.speed);
  add(options.compat_coqui);
  add(options.max_retries);
  return text;
}

class LineRun {
 public:
  LineRun(Synthesizer& synthesizer, const std::vector<SpeechLine>& lines,
          const SpeechJobOptions& options)
      : synthesizer_(synthesizer),
        lines_(lines),
        options_(options),
        folder_(options.folder),
        options_recipe_(options_recipe(options.standard, synthesizer.identity())),
        manifest_(prepared_folder(options)) {
    FolderDraft::remove_leftovers(folder_);
    progress_.total = static_cast<int64_t>(lines.size());
  }

  SpeechJobProgress run() {
    const size_t texts = synthesizer_.devices().size() * static_cast<size_t>(options_.batch_size);
    // A few more than there are places: some of them are writing.
    const size_t count = std::min(lines_.size(), texts + texts / 4 + 2);
    std::vector<std::thread> threads;
    threads.emplace_back([this] { guarded([this] { feed(); }); });
    for (size_t i = 0; i < count; ++i) {
      threads.emplace_back([this] { guarded([this] { finish_lines(); }); });
    }
    watch();
    for (std::thread& thread : threads) thread.join();
    std::vector<std::string> files;
    for (const SpeechLine& line : lines_) files.push_back(line.name + ".wav");
    manifest_.finish(files);
    if (failure_) std::rethrow_exception(failure_);
    if (options_.stop() && progress_.done < progress_.total) {
      throw Error(ErrorKind::interrupted,
                  fmt::format("interrupted after {} of {} lines; they are in `{}`", progress_.done,
                              progress_.total, options_.folder))
          .hint("the same command goes on from there");
    }
    return progress();
  }

 private:
  static std::filesystem::path prepared_folder(const SpeechJobOptions& options) {
    for (const std::string& folder :
         {options.folder, options.latents_folder, options.codes_folder}) {
      if (!folder.empty()) make_folder(folder);
    }
    return options.folder;
  }

  // The first failure ends the run.
  void guarded(const std::function<void()>& work) {
    try {
      work();
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      *cancel_ = true;
      waiting_.close();
    }
  }

  // On the caller's thread, while the others work.
  void watch() {
    constexpr auto pace = std::chrono::milliseconds(50);
    while (!over()) {
      if (options_.stop()) {
        *cancel_ = true;
        waiting_.close();
      }
      if (options_.on_progress) options_.on_progress(progress());
      std::this_thread::sleep_for(pace);
    }
    if (options_.on_progress) options_.on_progress(progress());
  }
  bool over() {
    std::lock_guard lock(mutex_);
    return *cancel_ || progress_.done == progress_.total;
  }

  void feed() {
    for (size_t i = 0; i < lines_.size() && !*cancel_; ++i) {
      ManifestEntry entry = planned(lines_[i]);
      if (!lines_[i].problem.empty()) {
        record_failure(std::move(entry), lines_[i].problem);
      } else if (is_done(entry)) {
        count([](SpeechJobProgress& progress) { ++progress.skipped; });
      } else {
        SpeechText text = text_of(lines_[i]);
        waiting_.put(
            {.line = i, .entry = std::move(entry), .speech = synthesizer_.submit(std::move(text))});
      }
    }
    waiting_.close();
  }

  SpeechText text_of(const SpeechLine& line) const {
    SpeechText text = options_.standard;
    text.text = line.text;
    if (!line.language.empty()) text.language = line.language;
    text.voice = voice_of(line);
    text.seed = line_seed(options_.standard.seed, line.name);
    text.keep_latents = !options_.latents_folder.empty();
    text.cancel = cancel_;
    return text;
  }

  VoiceChoice voice_of(const SpeechLine& line) const {
    VoiceChoice voice = options_.standard.voice;
    if (line.speaker.empty() && line.voice.empty()) return voice;
    voice.files = line.voice;
    voice.speaker = line.speaker;
    voice.saved.clear();
    return voice;
  }

  ManifestEntry planned(const SpeechLine& line) const {
    const VoiceChoice voice = voice_of(line);
    ManifestEntry entry{
        .id = line.id.empty() ? line.name : line.id,
        .text = line.text,
        .language = line.language.empty() ? options_.standard.language : line.language,
        .voice = !voice.speaker.empty() ? voice.speaker
                 : !voice.saved.empty() ? voice.saved
                                        : join(voice.files, ";"),
        .seed = line_seed(options_.standard.seed, line.name),
        .file = line.name + ".wav"};
    const bool has_voice = !entry.voice.empty();
    const std::string all =
        fmt::format("{}\n{}\n{}\n{}\n{}", options_recipe_, entry.text, entry.language, entry.seed,
                    has_voice ? voice_recipe(voice) : "");
    entry.recipe = fmt::format("{:016x}", hash_text(all));
    return entry;
  }

  bool is_done(const ManifestEntry& planned) const {
    const ManifestEntry* before = manifest_.find(planned.file);
    return before && before->status == "done" && before->recipe == planned.recipe &&
           std::filesystem::exists(folder_ / planned.file);
  }

  void finish_lines() {
    while (auto item = waiting_.get()) finish_line(std::move(*item));
  }

  void finish_line(Spoken item) {
    Speech speech;
    try {
      speech = item.speech.get();
    } catch (const Error& error) {
      if (*cancel_) return;
      // What lies in the line fails the line; what lies in the machine fails the run.
      const bool of_the_line = error.kind() == ErrorKind::data ||
                               error.kind() == ErrorKind::corrupt ||
                               error.kind() == ErrorKind::io || error.kind() == ErrorKind::usage;
      if (!of_the_line) throw;
      record_failure(std::move(item.entry), error.what());
      return;
    }
    write(lines_[item.line], item.entry, speech);
  }

  void write(const SpeechLine& line, ManifestEntry& entry, const Speech& speech) {
    write_wav((folder_ / entry.file).string(), speech.samples, 1, speech.sample_rate,
              SampleFormat::pcm16);
    const std::string name = line.name + ".safetensors";
    if (!options_.codes_folder.empty()) save_codes(options_.codes_folder + "/" + name, speech);
    if (!options_.latents_folder.empty()) {
      save_latents(options_.latents_folder + "/" + name, speech);
    }
    entry.status = "done";
    entry.seconds = speech.sound_seconds();
    entry.work_seconds = speech.seconds;
    for (const SpeechPiece& piece : speech.pieces) {
      entry.normalised += (entry.normalised.empty() ? "" : " ") + piece.normalised;
      entry.attempts += piece.attempts;
      entry.silence_cut += piece.silence_cut;
      entry.troubles.insert(entry.troubles.end(), piece.troubles.begin(), piece.troubles.end());
      entry.other_troubles.insert(entry.other_troubles.end(), piece.other_troubles.begin(),
                                  piece.other_troubles.end());
      ++entry.pieces;
    }
    manifest_.add(entry);
    count([&](SpeechJobProgress& progress) { progress.sound_seconds += entry.seconds; });
  }

  void record_failure(ManifestEntry entry, const std::string& sentence) {
    entry.status = "failed";
    entry.error = sentence;
    manifest_.add(entry);
    count([](SpeechJobProgress& progress) { ++progress.failed; });
  }

  template <class Change>
  void count(const Change& change) {
    std::lock_guard lock(mutex_);
    change(progress_);
    ++progress_.done;
  }

  SpeechJobProgress progress() {
    std::lock_guard lock(mutex_);
    SpeechJobProgress now = progress_;
    now.work_seconds = seconds_since(start_);
    return now;
  }

  Synthesizer& synthesizer_;
  const std::vector<SpeechLine>& lines_;
  const SpeechJobOptions& options_;
  std::filesystem::path folder_;
  std::string options_recipe_;
  Manifest manifest_;
  const Clock::time_point start_ = Clock::now();
  const std::shared_ptr<std::atomic<bool>> cancel_ = std::make_shared<std::atomic<bool>>(false);
  BoundedQueue<Spoken> waiting_{4};
  std::mutex mutex_;  // guards what follows
  SpeechJobProgress progress_;
  std::exception_ptr failure_;
};

}  // namespace

SpeechJobProgress speak_lines(Synthesizer& synthesizer, const std::vector<SpeechLine>& lines,
                              const SpeechJobOptions& options) {
  return LineRun(synthesizer, lines, options).run();
}

uint64_t line_seed(uint64_t seed, const std::string& name) {
  return counted_draw(seed, "line", hash_text(name), 0) >> 11;
}

}  // namespace tandem
