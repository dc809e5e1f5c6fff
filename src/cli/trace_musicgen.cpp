#include "cli/trace_musicgen.h"

#include <fmt/format.h>

#include "models/musicgen/musicgen_trace.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/log.h"

namespace tandem {
namespace {

std::vector<std::string> values(const Arguments& arguments, const std::string& flag) {
  const auto found = arguments.several.find(flag);
  return found == arguments.several.end() ? std::vector<std::string>{} : found->second;
}

MusicTraceRequest request_of(const Arguments& arguments, const MusicgenDefaults& defaults) {
  MusicTraceRequest request;
  request.captions = values(arguments, "--prompt");
  if (request.captions.empty()) {
    throw Error(ErrorKind::usage, "tandem trace needs --prompt TEXT, a caption")
        .hint("tandem help trace");
  }
  request.audio_prompts = values(arguments, "--audio-prompt");
  if (request.audio_prompts.size() > 1 && request.audio_prompts.size() != request.captions.size()) {
    throw Error(ErrorKind::usage,
                fmt::format("{} times --audio-prompt for {} captions; expected one for all or one "
                            "a caption",
                            request.audio_prompts.size(), request.captions.size()));
  }
  trace_needs(arguments, "--max-new-tokens", "N");
  request.new_tokens = trace_whole(arguments, "--max-new-tokens", 0);
  const std::string rng = arguments.value("--rng", "counted");
  if (rng != "hf" && rng != "counted")
    throw Error(ErrorKind::usage, fmt::format("--rng is `{}`; expected `hf` or `counted`", rng));
  request.hf_draws = rng == "hf";
  request.seed = static_cast<uint64_t>(trace_whole(arguments, "--seed", 0));
  request.draw = {
      .greedy = arguments.has("--greedy"),
      .temperature = trace_number(arguments, "--temperature", defaults.temperature),
      .top_p = trace_number(arguments, "--top-p", defaults.top_p),
      .guidance_scale = trace_number(arguments, "--guidance-scale", defaults.guidance_scale),
      .top_k = trace_whole(arguments, "--top-k", defaults.top_k)};
  return request;
}

}  // namespace

std::vector<Option> trace_musicgen_options() {
  return {{"--prompt", "TEXT", "musicgen: a caption; again for each further clip", "", true},
          {"--max-new-tokens", "N", "musicgen: columns of codes behind the start or the prompt"},
          {"--rng", "KIND", "musicgen: draws as `hf` on the CPU, or `counted` (default)"},
          {"--guidance-scale", "X", "musicgen: of the caption; 1 or less: none"},
          {"--audio-prompt", "FILE", "musicgen: sound to go on from, one for all or one a clip", "",
           true}};
}

int run_trace_musicgen(const Arguments& arguments) {
  const std::string folder = trace_needs(arguments, "--model", "DIR, a MusicGen folder");
  const std::string out = trace_needs(arguments, "--out", "FILE.safetensors");
  request_of(arguments, {});  // wrong words are told before a model is opened
  const bool prompted = !values(arguments, "--audio-prompt").empty();
  const Musicgen model = Musicgen::load(folder, {.with_codec_encoder = prompted});
  const MusicTrace trace = trace_musicgen(model, request_of(arguments, model.config.defaults));
  write_file_atomically(out, format_safetensors(trace.tensors, trace.metadata));
  log_info("{}: {} tensors of one generation", out, trace.tensors.size());
  return 0;
}

}  // namespace tandem
