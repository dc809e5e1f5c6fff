#include <fmt/format.h>

#include <cmath>

#include "cli/command.h"
#include "models/xtts/xtts_trace.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

std::string needed(const Arguments& arguments, const std::string& flag, const char* what) {
  if (arguments.has(flag) && !arguments.value(flag).empty()) return arguments.value(flag);
  throw Error(ErrorKind::usage, fmt::format("tandem trace needs {} {}", flag, what))
      .hint("tandem help trace");
}

double number(const Arguments& arguments, const std::string& flag, double otherwise) {
  if (!arguments.has(flag)) return otherwise;
  const auto value = parse_double(arguments.value(flag));
  if (value && std::isfinite(*value)) return *value;
  throw Error(ErrorKind::usage,
              fmt::format("{} is `{}`; expected a number", flag, arguments.value(flag)));
}

int64_t whole(const Arguments& arguments, const std::string& flag, int64_t otherwise) {
  if (!arguments.has(flag)) return otherwise;
  const auto value = parse_int(arguments.value(flag));
  if (value && *value >= 0) return *value;
  throw Error(ErrorKind::usage, fmt::format("{} is `{}`; expected a whole number, 0 or more", flag,
                                            arguments.value(flag)));
}

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
  request.voice = needed(arguments, "--voice", "FILE, a recording of the speaker");
  request.style = style_of(arguments);
  request.greedy = arguments.has("--greedy");
  request.teacher_forced = arguments.has("--teacher-forced");
  request.seed = static_cast<uint64_t>(whole(arguments, "--seed", 0));
  request.max_codes = whole(arguments, "--max-codes", 0);
  request.sampling = {
      .temperature = number(arguments, "--temperature", defaults.temperature),
      .length_penalty = number(arguments, "--length-penalty", defaults.length_penalty),
      .repetition_penalty = number(arguments, "--repetition-penalty", defaults.repetition_penalty),
      .top_k = whole(arguments, "--top-k", defaults.top_k),
      .top_p = number(arguments, "--top-p", defaults.top_p)};
  return request;
}

int run_trace(const Arguments& arguments) {
  if (arguments.rest != std::vector<std::string>{"xtts"}) {
    throw Error(ErrorKind::usage, arguments.rest.empty()
                                      ? "which model? expected `xtts`"
                                      : fmt::format("tandem trace knows no `{}`; expected `xtts`",
                                                    join(arguments.rest, " ")))
        .hint("tandem trace xtts --model DIR --voice ref.wav --text T --out trace.safetensors");
  }
  const std::string model = needed(arguments, "--model", "DIR, an XTTS folder");
  const std::string out = needed(arguments, "--out", "FILE.safetensors");
  needed(arguments, "--text", "TEXT");
  request_of(arguments, {});  // wrong words are told before a model is opened
  const XttsFolder folder = XttsFolder::open(model);
  const Trace trace = trace_xtts(folder, request_of(arguments, folder.config.sampling));
  write_file_atomically(out, format_safetensors(trace.tensors, trace.metadata));
  log_info("{}: {} tensors of one synthesis", out, trace.tensors.size());
  return 0;
}

}  // namespace

Command trace_command() {
  return {
      .name = "trace",
      .summary = "Write every intermediate of one synthesis, to compare implementations",
      .rest = "xtts",
      .details =
          "Speaks one text on the CPU in float32, plainly, and keeps what every stage gives under\n"
          "fixed names: text_ids, audio_22k, mel_dvae, mel_cond, audio_16k, mel_speaker,\n"
          "gpt_cond_latent, speaker_embedding, dvae_codes, codes, logits, latents, wav; with\n"
          "--teacher-forced also loss_text, loss_mel, text_logits, mel_logits. The normalised "
          "text\n"
          "and what was asked for are in the file's metadata.\n\n"
          "  tandem trace xtts --model DIR --voice ref.wav --language en --text \"Hello.\" "
          "--greedy \\\n"
          "      --out trace.safetensors",
      .settings = 0,
      .chooses_devices = false,
      .options = {{"--model", "DIR", "an XTTS folder, Coqui's or ours"},
                  {"--voice", "FILE", "a recording of the speaker"},
                  {"--language", "L", "of the text (default en)"},
                  {"--text", "T", "what is spoken"},
                  {"--out", "FILE", "the trace, a safetensors file"},
                  {"--greedy", "", "the likeliest code each time, after the repetition penalty"},
                  {"--max-codes", "N", "stop after N codes (default: what the model allows)"},
                  {"--teacher-forced", "",
                   "also the losses of the recording's own codes, behind the same text"},
                  {"--compat", "STYLE",
                   "text cleaned as `coqui` does (default), or `best`, as synthesize does"},
                  {"--seed", "N", "of the draws (default 0)"},
                  {"--temperature", "X",
                   "default, as for the next four: what the model's "
                   "config.json says"},
                  {"--top-k", "N", "draw among the N likeliest codes; 0: all"},
                  {"--top-p", "X", "draw among the likeliest codes that hold this share"},
                  {"--repetition-penalty", "X", "divides the logits of codes said before"},
                  {"--length-penalty", "X", "kept in the metadata; of no effect without beams"}},
      .run = run_trace};
}

}  // namespace tandem
