#include "cli/synthesize_many.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "generate/speech_jobs.h"
#include "observe/progress.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/signals.h"
#include "util/text.h"

namespace tandem {
namespace {

double times_real_time(const SpeechJobProgress& progress) {
  return progress.work_seconds > 0 ? progress.sound_seconds / progress.work_seconds : 0;
}

// A moving line on a terminal, and some twenty plain lines elsewhere.
class ManyView {
 public:
  explicit ManyView(int64_t total)
      : every_(std::max<int64_t>(1, total / 20)), bar_(0, total, every_, "line") {}

  void update(const SpeechJobProgress& progress) {
    int64_t done = progress.done;
    if (!terminal_wants_progress() && done < progress.total) done -= done % every_;
    if (done == shown_) return;
    shown_ = done;
    std::string figures = fmt::format("{} of speech, {:.1f}x real time (rtf {:.4f})",
                                      format_seconds(progress.sound_seconds),
                                      times_real_time(progress), rtf(progress));
    if (progress.skipped) figures += fmt::format(", {} done before", progress.skipped);
    if (progress.failed) figures += fmt::format(", {} failed", progress.failed);
    bar_.update(done, figures);
  }
  static double rtf(const SpeechJobProgress& progress) {
    const double times = times_real_time(progress);
    return times > 0 ? 1 / times : 0;
  }

 private:
  int64_t every_, shown_ = 0;
  Progress bar_;
};

void print_json(const SynthesizeRequest& request, const Synthesizer& synthesizer,
                const SpeechJobProgress& progress) {
  const nlohmann::ordered_json document = {
      {"folder", request.output},
      {"manifest", request.output + "/manifest.jsonl"},
      {"lines", progress.total},
      {"spoken", progress.done - progress.skipped - progress.failed},
      {"skipped", progress.skipped},
      {"failed", progress.failed},
      {"seed", request.standard.seed},
      {"seconds", progress.sound_seconds},
      {"work_seconds", progress.work_seconds},
      {"rtf", ManyView::rtf(progress)},
      {"times_real_time", times_real_time(progress)},
      {"devices", synthesizer.devices()}};
  print(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

SpeechJobProgress speak_all(Synthesizer& synthesizer, const std::vector<SpeechLine>& lines,
                            const SynthesizeRequest& request) {
  ManyView view(static_cast<int64_t>(lines.size()));
  try {
    return speak_lines(synthesizer, lines,
                       {.folder = request.output,
                        .standard = request.standard,
                        .latents_folder = request.save_latents,
                        .codes_folder = request.save_codes,
                        .batch_size = request.synthesizer.batch_size,
                        .on_progress = [&](const SpeechJobProgress& now) { view.update(now); },
                        .stop = [] { return stop_requested() != StopRequest::none; }});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::interrupted || stop_requested() != StopRequest::terminated)
      throw;
    throw Error(ErrorKind::terminated, error.what()).hint(error.hint());
  }
}

}  // namespace

int speak_many(const SynthesizeRequest& request) {
  const std::vector<SpeechLine> lines = read_speech_lines(request.lines_file);
  Synthesizer synthesizer(request.model, request.synthesizer);
  const VoiceChoice& voice = request.standard.voice;
  const bool common = !voice.files.empty() || !voice.speaker.empty() || !voice.saved.empty();
  if (common) synthesizer.prepare_voice(voice);
  const SpeechJobProgress progress = speak_all(synthesizer, lines, request);
  if (request.json) print_json(request, synthesizer, progress);
  log_info("{} lines: {} spoken, {} done before, {} failed; {} of speech in {} ({:.1f}x real time)",
           progress.total, progress.done - progress.skipped - progress.failed, progress.skipped,
           progress.failed, format_seconds(progress.sound_seconds),
           format_seconds(progress.work_seconds), times_real_time(progress));
  if (progress.failed == 0) return 0;
  log_warning("{} of {} lines could not be spoken; `{}/manifest.jsonl` says why", progress.failed,
              progress.total, request.output);
  return exit_code(ErrorKind::data);
}

}  // namespace tandem
