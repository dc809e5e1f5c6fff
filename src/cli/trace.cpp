#include <fmt/format.h>

#include <cmath>

#include "cli/command.h"
#include "cli/trace_musicgen.h"
#include "models/xtts/xtts_trace.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

CleanStyle style_of(const Arguments& arguments) {
  const std::string style = arguments.value("--compat", "coqui");
  if (style == "coqui") return CleanStyle::coqui;
  if (style == "best") return CleanStyle::best;
  throw Error(ErrorKind::usage, fmt::format("--compat is `{}`; expected `coqui` or `best`", style));
}

TraceRequest request_of(const Arguments& arguments, const XttsSampling& defaults) {
  TraceRequest request;
  request.text = arguments.value("--text");
  request.language = arguments.value("--language", "en");
  request.voice = trace_needs(arguments, "--voice", "FILE, a recording of the speaker");
  request.style = style_of(arguments);
  request.greedy = arguments.has("--greedy");
  request.teacher_forced = arguments.has("--teacher-forced");
  request.seed = static_cast<uint64_t>(trace_whole(arguments, "--seed", 0));
  request.max_codes = trace_whole(arguments, "--max-codes", 0);
  request.sampling = {
      .temperature = trace_number(arguments, "--temperature", defaults.temperature),
      .length_penalty = trace_number(arguments, "--length-penalty", defaults.length_penalty),
      .repetition_penalty =
          trace_number(arguments, "--repetition-penalty", defaults.repetition_penalty),
      .top_k = trace_whole(arguments, "--top-k", defaults.top_k),
      .top_p = trace_number(arguments, "--top-p", defaults.top_p)};
  return request;
}

int run_trace_xtts(const Arguments& arguments) {
  const std::string model = trace_needs(arguments, "--model", "DIR, an XTTS folder");
  const std::string out = trace_needs(arguments, "--out", "FILE.safetensors");
  trace_needs(arguments, "--text", "TEXT");
  request_of(arguments, {});  // wrong words are told before a model is opened
  const XttsFolder folder = XttsFolder::open(model);
  const Trace trace = trace_xtts(folder, request_of(arguments, folder.config.sampling));
  write_file_atomically(out, format_safetensors(trace.tensors, trace.metadata));
  log_info("{}: {} tensors of one synthesis", out, trace.tensors.size());
  return 0;
}

// Options that only XTTS has.
std::vector<Option> xtts_options() {
  return {{"--voice", "FILE", "xtts: a recording of the speaker"},
          {"--language", "L", "xtts: of the text (default en)"},
          {"--text", "T", "xtts: what is spoken"},
          {"--max-codes", "N", "xtts: stop after N codes (default: what the model allows)"},
          {"--teacher-forced", "",
           "xtts: also the losses of the recording's own codes, behind the same text"},
          {"--compat", "STYLE",
           "xtts: text cleaned as `coqui` does (default), or `best`, as synthesize does"},
          {"--repetition-penalty", "X", "xtts: divides the logits of codes said before"},
          {"--length-penalty", "X", "xtts: kept in the metadata; of no effect without beams"}};
}

void refuse(const std::vector<Option>& options, const Arguments& arguments, const char* model) {
  for (const Option& option : options) {
    if (!arguments.has(option.flag)) continue;
    throw Error(ErrorKind::usage,
                fmt::format("`tandem trace {}` has no option `{}`", model, option.flag))
        .hint("tandem help trace");
  }
}

int run_trace(const Arguments& arguments) {
  const std::string model = join(arguments.rest, " ");
  if (model == "xtts") {
    refuse(trace_musicgen_options(), arguments, "xtts");
    return run_trace_xtts(arguments);
  }
  if (model == "musicgen") {
    refuse(xtts_options(), arguments, "musicgen");
    return run_trace_musicgen(arguments);
  }
  throw Error(ErrorKind::usage, model.empty()
                                    ? "which model? expected `xtts` or `musicgen`"
                                    : fmt::format("tandem trace knows no `{}`; expected `xtts` or "
                                                  "`musicgen`",
                                                  model))
      .hint("tandem trace xtts --model DIR --voice ref.wav --text T --out trace.safetensors");
}

std::vector<Option> all_trace_options() {
  std::vector<Option> options = {
      {"--model", "DIR", "a folder of the model, as published or ours"},
      {"--out", "FILE", "the trace, a safetensors file"},
      {"--greedy", "", "the likeliest code each time"},
      {"--seed", "N", "of the draws (default 0)"},
      {"--temperature", "X", "default, as for those below: what the model's folder says"},
      {"--top-k", "N", "draw among the N likeliest codes; 0: all"},
      {"--top-p", "X", "draw among the likeliest codes that hold this share"}};
  for (const auto& more : {xtts_options(), trace_musicgen_options()})
    options.insert(options.end(), more.begin(), more.end());
  return options;
}

}  // namespace

std::string trace_needs(const Arguments& arguments, const std::string& flag, const char* what) {
  if (arguments.has(flag) && !arguments.value(flag).empty()) return arguments.value(flag);
  throw Error(ErrorKind::usage, fmt::format("tandem trace needs {} {}", flag, what))
      .hint("tandem help trace");
}

double trace_number(const Arguments& arguments, const std::string& flag, double otherwise) {
  if (!arguments.has(flag)) return otherwise;
  const auto value = parse_double(arguments.value(flag));
  if (value && std::isfinite(*value)) return *value;
  throw Error(ErrorKind::usage,
              fmt::format("{} is `{}`; expected a number", flag, arguments.value(flag)));
}

int64_t trace_whole(const Arguments& arguments, const std::string& flag, int64_t otherwise) {
  if (!arguments.has(flag)) return otherwise;
  const auto value = parse_int(arguments.value(flag));
  if (value && *value >= 0) return *value;
  throw Error(ErrorKind::usage, fmt::format("{} is `{}`; expected a whole number, 0 or more", flag,
                                            arguments.value(flag)));
}

Command trace_command() {
  return {
      .name = "trace",
      .summary = "Write every intermediate of one synthesis, to compare implementations",
      .rest = "xtts|musicgen",
      .details =
          "Works on the CPU in float32, plainly, and keeps what every stage gives under fixed\n"
          "names. What was asked for is in the file's metadata.\n\n"
          "xtts speaks one text: text_ids, audio_22k, mel_dvae, mel_cond, audio_16k, "
          "mel_speaker,\n"
          "gpt_cond_latent, speaker_embedding, dvae_codes, codes, logits, latents, wav; with\n"
          "--teacher-forced also loss_text, loss_mel, text_logits, mel_logits.\n\n"
          "  tandem trace xtts --model DIR --voice ref.wav --language en --text \"Hello.\" "
          "--greedy \\\n"
          "      --out trace.safetensors\n\n"
          "musicgen makes a batch of clips: text_ids, text_mask, text_states, of the first step\n"
          "logits_cond, logits_uncond, logits_cfg, then tokens, codes, wav; with --audio-prompt\n"
          "also prompt_codes.\n\n"
          "  tandem trace musicgen --model DIR --prompt \"80s music\" --max-new-tokens 40 "
          "--greedy \\\n"
          "      --out trace.safetensors",
      .settings = 0,
      .chooses_devices = false,
      .options = all_trace_options(),
      .run = run_trace};
}

}  // namespace tandem
