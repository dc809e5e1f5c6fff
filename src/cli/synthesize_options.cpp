#include "cli/synthesize_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "cli/session.h"
#include "generate/speech_jobs_lines.h"
#include "generate/voice_store.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace {

[[noreturn]] void refuse(const std::string& sentence, const std::string& hint = "") {
  throw Error(ErrorKind::usage, sentence).hint(hint);
}

std::optional<double> number(const Arguments& arguments, const std::string& flag) {
  if (!arguments.has(flag)) return std::nullopt;
  const auto value = parse_double(arguments.value(flag));
  if (!value) refuse(fmt::format("{} is `{}`; expected a number", flag, arguments.value(flag)));
  return value;
}

std::optional<int64_t> whole(const Arguments& arguments, const std::string& flag) {
  if (!arguments.has(flag)) return std::nullopt;
  const auto value = parse_int(arguments.value(flag));
  if (!value) {
    refuse(fmt::format("{} is `{}`; expected a whole number", flag, arguments.value(flag)));
  }
  return value;
}

std::optional<bool> on_or_off(const Arguments& arguments, const std::string& flag) {
  if (!arguments.has(flag)) return std::nullopt;
  const std::string word = lower(arguments.value(flag));
  if (word == "on" || word == "true") return true;
  if (word == "off" || word == "false") return false;
  refuse(fmt::format("{} is `{}`; expected on or off", flag, arguments.value(flag)));
}

std::string standard_input() {
  if (isatty(STDIN_FILENO)) refuse("no text was given", "--text \"Hello.\" or --text-file FILE");
  std::string text;
  char buffer[1 << 16];
  while (const size_t got = std::fread(buffer, 1, sizeof buffer, stdin)) text.append(buffer, got);
  return text;
}

bool names_a_sound(const std::string& path) {
  const std::string ending = lower(std::filesystem::path(path).extension().string());
  return ending == ".wav" || ending == ".flac";
}

// A table always has many texts; a .txt has them when a folder is asked for.
bool has_many_texts(const std::string& file, const std::string& output) {
  if (file.empty() || !is_line_file(file)) return false;
  const bool table = lower(std::filesystem::path(file).extension().string()) != ".txt";
  if (table && names_a_sound(output)) {
    refuse(fmt::format("`{}` holds many texts, which `{}` cannot: expected a folder", file, output),
           "-o DIR");
  }
  return table || (!output.empty() && !names_a_sound(output));
}

std::string text_of(const Arguments& arguments, const std::string& file) {
  const std::string text = arguments.has("--text")       ? arguments.value("--text")
                           : file.empty() || file == "-" ? standard_input()
                                                         : read_file(file);
  if (!trim(text).empty()) return text;
  throw Error(ErrorKind::data, "the text is empty: there is nothing to say");
}

// So that no minute of work ends in a sentence about a folder.
void check_output(const SynthesizeRequest& request) {
  const std::filesystem::path output = request.output;
  if (output.empty()) return;
  const auto fail = [&](const char* why) {
    throw Error(ErrorKind::io, fmt::format("cannot write `{}`: {}", output.string(), why));
  };
  if (!request.lines_file.empty()) {  // a folder, which is made when it is not there
    if (std::filesystem::exists(output) && !std::filesystem::is_directory(output)) {
      fail("it is a file, not a folder");
    }
    return;
  }
  if (!names_a_sound(request.output)) {
    refuse(fmt::format("the output is `{}`; expected a name that ends in .wav or .flac",
                       request.output),
           "-o out.wav");
  }
  const std::filesystem::path folder = output.has_parent_path() ? output.parent_path() : ".";
  if (std::filesystem::is_directory(output)) fail("it is a folder");
  if (!std::filesystem::is_directory(folder)) fail("its folder does not exist");
  if (::access(folder.c_str(), W_OK) != 0) fail("no permission to write into its folder");
}

void read_text_options(const Arguments& arguments, SpeechText& text) {
  text.language = arguments.value("--language", "en");
  text.voice = voice_of(arguments);
  if (const auto seed = whole(arguments, "--seed")) {
    if (*seed < 0) refuse(fmt::format("--seed is `{}`; expected 0 or more", *seed));
    text.seed = static_cast<uint64_t>(*seed);
  }
  text.temperature = number(arguments, "--temperature");
  text.length_penalty = number(arguments, "--length-penalty");
  text.repetition_penalty = number(arguments, "--repetition-penalty");
  text.top_k = whole(arguments, "--top-k");
  text.top_p = number(arguments, "--top-p");
  text.do_sample = on_or_off(arguments, "--do-sample").value_or(true) && !arguments.has("--greedy");
  text.speed = number(arguments, "--speed").value_or(1);
  text.enable_text_splitting = on_or_off(arguments, "--enable-text-splitting");
  const std::string compat = arguments.value("--compat");
  if (!compat.empty() && compat != "coqui") {
    refuse(fmt::format("--compat is `{}`; expected coqui", compat));
  }
  text.compat_coqui = !compat.empty();
  text.max_retries = static_cast<int>(arguments.integer("--max-retries").value_or(2));
  text.stream_chunk_size = whole(arguments, "--stream-chunk-size").value_or(20);
}

}  // namespace

std::string model_of(const Arguments& arguments) {
  const std::string model = arguments.value("--model");
  if (model.empty()) refuse("no model was given", "--model DIR, a folder that holds an XTTS model");
  return model;
}

VoiceChoice voice_of(const Arguments& arguments) {
  VoiceChoice voice{.speaker = arguments.value("--speaker"),
                    .saved = arguments.value("--voice-file"),
                    .gpt_cond_len = number(arguments, "--gpt-cond-len"),
                    .gpt_cond_chunk_len = number(arguments, "--gpt-cond-chunk-len"),
                    .max_ref_len = number(arguments, "--max-ref-len")};
  if (arguments.has("--voice")) voice.files = split(arguments.value("--voice"), '\n');
  if (arguments.has("--sound-norm-refs")) voice.sound_norm_refs = true;
  return voice;
}

DeviceRequest speech_device_request(const Arguments& arguments) {
  DeviceRequest request = device_request(arguments);
  if (arguments.has("--visible-gpus")) request.visible_gpus = arguments.value("--visible-gpus");
  return request;
}

SynthesizeRequest synthesize_request(const Arguments& arguments) {
  SynthesizeRequest request;
  request.model = model_of(arguments);
  request.output = arguments.value("--output");
  request.stream = arguments.has("--stream");
  request.json = arguments.has("--json");
  request.save_latents = arguments.value("--save-latents");
  request.save_codes = arguments.value("--save-codes");
  request.synthesizer.precision = arguments.value("--precision", "auto");
  request.synthesizer.batch_size = whole(arguments, "--batch-size").value_or(16);
  for (const std::string& name : split(arguments.value("--devices"), ',')) {
    if (!trim(name).empty()) request.synthesizer.devices.push_back(trim(name));
  }
  read_text_options(arguments, request.standard);
  if (arguments.has("--text") && arguments.has("--text-file")) {
    refuse("--text and --text-file were both given; expected one of them");
  }
  const std::string file = arguments.value("--text-file");
  if (has_many_texts(file, request.output)) request.lines_file = file;
  const bool many = !request.lines_file.empty();
  if (!request.stream && request.output.empty()) {
    refuse("no output was given", many ? "-o DIR" : "-o out.wav, or --stream");
  }
  if (request.stream && request.json) refuse("--stream and --json both want standard output");
  if (request.stream && many) refuse("many texts cannot be streamed; expected one");
  if (!many || !request.standard.voice.speaker.empty() || !request.standard.voice.saved.empty() ||
      !request.standard.voice.files.empty()) {
    check_voice_choice(request.standard.voice);
  }
  check_output(request);
  if (!many) request.standard.text = text_of(arguments, file);
  return request;
}

std::vector<Option> recording_options() {
  return {{"--gpt-cond-len", "S", "seconds of the recordings that condition the model"},
          {"--gpt-cond-chunk-len", "S", "in pieces of so many seconds"},
          {"--max-ref-len", "S", "seconds of each recording for the speaker's embedding"},
          {"--sound-norm-refs", "", "bring recordings to one loudness first"}};
}

std::vector<Option> voice_options() {
  return {{"--voice", "FILE...", "recordings of the speaker to clone"},
          {"--speaker", "NAME", "a speaker of the model's folder (`tandem voice list`)"},
          {"--voice-file", "FILE", "a voice that `tandem voice save` wrote"}};
}

std::vector<Option> synthesize_options() {
  std::vector<Option> options = {
      {"--model", "DIR", "a folder that holds an XTTS model, Coqui's or ours"},
      {"--language", "L", "language of the text (default en)"},
      {"--text", "T", "what to say; else --text-file, else standard input"},
      {"--text-file", "FILE", "a text, or many: .txt with -o DIR, .csv, .tsv, .jsonl"}};
  const auto add = [&](std::vector<Option> more) {
    options.insert(options.end(), more.begin(), more.end());
  };
  add(voice_options());
  add({{"--output", "FILE", "sound (.wav, .flac), or a folder for many texts", "-o"},
       {"--stream", "", "16-bit mono PCM to standard output while it is spoken"},
       {"--seed", "N", "equal seeds speak equally (default 0)"},
       {"--speed", "X", "2: twice as fast (default 1)"},
       {"--temperature", "X", "spread of the sampling; this and the next: as the model says"},
       {"--length-penalty", "X", "known to Coqui's users; without beams it has no effect"},
       {"--repetition-penalty", "X", "makes codes rarer that were said before"},
       {"--top-k", "N", "likeliest codes to draw from; 0: all"},
       {"--top-p", "X", "share of probability to draw from"},
       {"--do-sample", "on|off", "off: always the likeliest code (default on)"},
       {"--greedy", "", "the same as --do-sample off"}});
  add(recording_options());
  add({{"--enable-text-splitting", "on|off", "at sentences (default on; off with --compat coqui)"},
       {"--stream-chunk-size", "N", "codes a piece of streamed sound (default 20)"},
       {"--compat", "coqui", "as coqui-tts does it: its cleaning, no stop control, no pauses"},
       {"--max-retries", "N", "of a piece that went wrong (default 2)"},
       {"--precision", "P", "auto, fp32, tf32, bf16 or fp16"},
       {"--batch-size", "N", "pieces spoken at once on one device (default 16)"},
       {"--devices", "LIST", "such as /GPU:0,/GPU:1 or /CPU:0 (default: all GPUs)"},
       {"--visible-gpus", "LIST", "use only these GPUs"},
       {"--save-latents", "FILE", "latents, safetensors; of many texts: a folder"},
       {"--save-codes", "FILE", "codes and token ids, safetensors; of many texts: a folder"},
       {"--json", "", "one JSON document"}});
  return options;
}

}  // namespace tandem
