#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/command.h"
#include "cli/session.h"
#include "device/device_scope.h"
#include "device/registry.h"
#include "generate/clip_fad.h"
#include "generate/evaluation_files.h"
#include "generate/verify_clips.h"
#include "observe/progress.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/signals.h"
#include "util/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t told_findings = 50;

bool told_to_stop() { return stop_requested() != StopRequest::none; }

double limit_of(const Arguments& arguments, const std::string& flag, double otherwise) {
  if (!arguments.has(flag)) return otherwise;
  const auto number = parse_double(arguments.value(flag));
  if (!number || !(*number >= 0)) {
    throw Error(ErrorKind::usage, fmt::format("{} is `{}`; expected a number of at least 0", flag,
                                              arguments.value(flag)));
  }
  return *number;
}

// A moving line on a terminal, some twenty plain ones elsewhere.
class Counting {
 public:
  explicit Counting(std::string item) : item_(std::move(item)) {}
  void operator()(int64_t done, int64_t total) {
    if (!bar_) bar_ = std::make_unique<Progress>(0, total, std::max<int64_t>(1, total / 20), item_);
    bar_->update(done, "");
  }

 private:
  std::string item_;
  std::unique_ptr<Progress> bar_;
};

struct Spread {
  double least = 0, mean = 0, most = 0;
};

struct Summary {
  int64_t measured = 0;
  double seconds = 0;
  Spread loudness;  // of clips that have one
  double peak = 0, true_peak = 0;
};

Summary summary_of(const VerifyReport& report) {
  Summary summary;
  std::vector<double> loud;
  for (const VerifiedClip& clip : report.clips) {
    if (!clip.measured) continue;
    ++summary.measured;
    summary.seconds += clip.seconds;
    summary.peak = std::max(summary.peak, clip.signal.peak);
    summary.true_peak = std::max(summary.true_peak, clip.signal.true_peak);
    if (std::isfinite(clip.signal.loudness)) loud.push_back(clip.signal.loudness);
  }
  if (loud.empty()) return summary;
  summary.loudness = {
      .least = std::ranges::min(loud),
      .mean = std::accumulate(loud.begin(), loud.end(), 0.0) / static_cast<double>(loud.size()),
      .most = std::ranges::max(loud)};
  return summary;
}

// Names and details come from files: control characters must not reach the terminal.
std::string shown(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return safe;
}

std::string findings_table(const VerifyReport& report) {
  size_t widest = 4;
  const size_t told = std::min(told_findings, report.findings.size());
  for (size_t i = 0; i < told; ++i) widest = std::max(widest, report.findings[i].file.size());
  widest = std::min<size_t>(widest, 48);
  std::string text = fmt::format("{:<{}}  {:<11} {}\n", "file", widest, "fault", "what is wrong");
  for (size_t i = 0; i < told; ++i) {
    const ClipFinding& finding = report.findings[i];
    text += fmt::format("{:<{}}  {:<11} {}\n", shown(finding.file), widest, finding.fault,
                        shown(finding.detail));
  }
  if (told < report.findings.size())
    text += fmt::format("and {} more (--json lists all)\n", report.findings.size() - told);
  return text;
}

std::string summary_text(const VerifyReport& report) {
  const Summary summary = summary_of(report);
  std::string text = fmt::format("{} clips listed, {} right, {} of sound\n", report.listed,
                                 report.right(), format_seconds(summary.seconds));
  if (summary.measured > 0) {
    text += fmt::format("loudness {:.1f} LUFS ({:.1f} to {:.1f}), peak {:.3f}, true peak {:.3f}\n",
                        summary.loudness.mean, summary.loudness.least, summary.loudness.most,
                        summary.peak, summary.true_peak);
  }
  std::map<std::string, int64_t> faults;
  for (const ClipFinding& finding : report.findings) ++faults[finding.fault];
  std::vector<std::string> parts;
  for (const auto& [fault, count] : faults) parts.push_back(fmt::format("{} {}", count, fault));
  text += parts.empty() ? "nothing is wrong\n" : "wrong: " + join(parts, ", ") + "\n";
  return text;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json clip_json(const VerifiedClip& clip) {
  Json json = {{"id", clip.id}, {"file", clip.file}, {"listed", clip.listed}};
  if (!clip.measured) return json;
  const SignalFacts& signal = clip.signal;
  json.update({{"seconds", clip.seconds},
               {"channels", clip.channels},
               {"sample_rate", clip.sample_rate},
               {"peak", signal.peak},
               {"true_peak", signal.true_peak},
               {"full_scale", signal.full_scale},
               {"offset", signal.offset},
               {"rms", signal.rms},
               {"silence", signal.silence},
               {"loudness", number(signal.loudness)},
               {"not_finite", signal.not_finite}});
  return json;
}

Json report_json(const VerifyReport& report) {
  const Summary summary = summary_of(report);
  Json json = {{"folder", report.folder.string()},
               {"clips", report.listed},
               {"right", report.right()},
               {"seconds", summary.seconds},
               {"loudness",
                {{"mean", summary.loudness.mean},
                 {"least", summary.loudness.least},
                 {"most", summary.loudness.most}}},
               {"peak", summary.peak},
               {"true_peak", summary.true_peak},
               {"findings", Json::array()},
               {"measured", Json::array()}};
  for (const ClipFinding& finding : report.findings) {
    json["findings"].push_back(
        {{"file", finding.file}, {"fault", finding.fault}, {"detail", finding.detail}});
  }
  for (const VerifiedClip& clip : report.clips) json["measured"].push_back(clip_json(clip));
  return json;
}

struct Judged {
  FadReport fad;
  fs::path results;
};

Judged judge(const Arguments& arguments, const VerifyReport& report) {
  const fs::path reference = arguments.value("--reference"), model = arguments.value("--model");
  std::error_code ignored;
  const fs::path inner = reference / "audio_samples";
  const std::vector<fs::path> references =
      sounds_in(fs::is_directory(inner, ignored) ? inner : reference);
  if (references.empty()) {
    throw Error(ErrorKind::data,
                fmt::format("the reference folder `{}` holds no sounds", reference.string()));
  }
  std::vector<fs::path> clips;
  std::vector<std::string> files;
  for (const VerifiedClip& clip : report.clips) {
    if (!clip.measured || clip.signal.not_finite) continue;
    clips.push_back(clip.path);
    files.push_back(clip.file);
  }
  DeviceRegistry& registry = DeviceRegistry::get();
  DeviceScope scope(registry.gpus().empty() ? registry.cpu() : *registry.gpus().front());
  const Encodec codec = load_codec(model);
  Counting counting("sound");
  Judged judged;
  judged.fad =
      measure_fad(codec, clips, references,
                  {.on_progress = [&](int64_t done, int64_t total) { counting(done, total); },
                   .stop = told_to_stop});
  for (const std::string& sentence : judged.fad.unread) log_warning("{}", sentence);
  judged.results = write_evaluation(
      {.clips = report, .fad = judged.fad, .files = files, .reference = reference, .model = model});
  return judged;
}

std::string fad_text(const Judged& judged) {
  const FadReport& fad = judged.fad;
  std::string text = fmt::format("FAD on EnCodec features: {:.4f}, {} clips against {} references",
                                 fad.score, fad.clips, fad.references);
  if (!fad.subset_scores.empty()) {
    text += fmt::format("; {} subsets: mean {:.4f}, deviation {:.4f}", fad.subset_scores.size(),
                        fad.mean, fad.deviation);
  }
  return text + fmt::format("\n-> {}\n", judged.results.string());
}

Json fad_json(const Judged& judged) {
  const FadReport& fad = judged.fad;
  return {{"score", number(fad.score)},
          {"mean", number(fad.mean)},
          {"deviation", number(fad.deviation)},
          {"subset_scores", fad.subset_scores},
          {"clips", fad.clips},
          {"references", fad.references},
          {"results", judged.results.string()}};
}

int run_verify(const Arguments& arguments) {
  if (arguments.rest.size() != 1)
    throw Error(ErrorKind::usage, "expected one folder of clips").hint("tandem verify DIR");
  const bool with_reference = arguments.has("--reference"), json = arguments.has("--json");
  if (with_reference != arguments.has("--model")) {
    throw Error(ErrorKind::usage, with_reference ? "--reference also needs --model"
                                                 : "--model is of use only with --reference")
        .hint("tandem verify DIR --reference REFDIR --model MODELDIR");
  }
  const ClipLimits standard;
  const VerifyOptions wanted{
      .limits = {.full_scale = limit_of(arguments, "--max-clipped", standard.full_scale),
                 .offset = limit_of(arguments, "--max-offset", standard.offset),
                 .silence = limit_of(arguments, "--max-silence", standard.silence),
                 .length = standard.length}};
  if (with_reference) configure_or_stop(device_request(arguments));
  catch_stop_signals();
  const VerifyReport report = [&] {
    Counting counting("clip");
    VerifyOptions options = wanted;
    options.on_progress = [&](int64_t done, int64_t total) { counting(done, total); };
    options.stop = told_to_stop;
    return verify_clips(arguments.rest[0], options);
  }();
  Json document;
  std::string text;
  json ? void(document = report_json(report))
       : void(text = (report.findings.empty() ? "" : findings_table(report) + "\n") +
                     summary_text(report));
  if (with_reference) {
    const Judged judged = judge(arguments, report);
    json ? void(document["fad"] = fad_json(judged)) : void(text += fad_text(judged));
  }
  if (json) text = document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  print(text.substr(0, text.size() - 1));
  return report.findings.empty() ? 0 : exit_code(ErrorKind::data);
}

}  // namespace

Command verify_command() {
  return {.name = "verify",
          .summary = "check a folder of generated clips against its manifest",
          .rest = "DIR",
          .details =
              "Every clip of manifest.jsonl must be there, unchanged, as long as it should be,\n"
              "finite, not silent, not clipped, without offset, and unlike the others; nothing\n"
              "else may lie among them. Exit code 3 when something is wrong.\n\n"
              "With --reference the Frechet distance (FAD) of the clips to a folder of sounds is\n"
              "computed on features of the model's own EnCodec, and written into\n"
              "DIR/evaluation_results.\n\n"
              "  tandem verify data/musicgen-small/job_17\n"
              "  tandem verify RUN --reference musiccaps_audio --model musicgen-small",
          .settings = 0,
          .chooses_devices = true,
          .options = {{"--reference", "DIR", "sounds to compare with"},
                      {"--model", "DIR", "MusicGen folder whose EnCodec judges"},
                      {"--max-clipped", "SHARE", "of samples at full scale (0.01)"},
                      {"--max-offset", "X", "of the mean from 0 (0.05)"},
                      {"--max-silence", "SHARE", "of a clip under -60 dBFS (0.9)"},
                      {"--json", "", "one JSON document, with every clip's figures"}},
          .run = run_verify};
}

}  // namespace tandem
