#include "cli/generate_options.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "cli/session.h"
#include "generate/music_plan.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse(const std::string& sentence, const std::string& hint = "") {
  throw Error(ErrorKind::usage, sentence).hint(hint);
}

// Whether the user named it for this run, not a preset or a file of settings.
bool named_now(const Resolved& resolved, const std::string& key) {
  const Source::Layer layer = resolved.sources.at(key).layer;
  return layer == Source::Layer::group || layer == Source::Layer::flag ||
         layer == Source::Layer::override_;
}

std::optional<std::string> batch_size_word(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos) return std::nullopt;
  const std::string name = word.substr(0, equals);
  const bool means_it = name == "batch_size" || name == "data.batch_size";
  return means_it ? std::optional("generation." + word.substr(word.find("batch_size")))
                  : std::nullopt;
}

void choose_model(const Arguments& arguments, const Resolved& resolved, GenerateRequest& request) {
  const Config& config = request.config;
  const fs::path given = arguments.value("--model");
  const fs::path folder =
      given.empty() ? fs::path(config.paths.model_dir) / config.model.name : given;
  if (!fs::is_directory(folder)) {
    const bool half_given =
        given.empty() && fs::is_regular_file(fs::path(config.paths.model_dir) / "config.json");
    throw Error(ErrorKind::io, fmt::format("there is no model folder `{}`", folder.string()))
        .hint(half_given
                  ? fmt::format("`{0}` is a model itself: --model {0}", config.paths.model_dir)
                  : "--model DIR, or model.name=NAME with paths.model_dir=DIR that holds "
                    "DIR/NAME");
  }
  request.model_folder = folder.string();
  request.model_name = config.model.name;
  if (given.empty() || named_now(resolved, "model.name")) return;
  request.model_name = fs::canonical(folder).filename().string();
}

void choose_captions(const Arguments& arguments, const Resolved& resolved,
                     GenerateRequest& request) {
  if (arguments.has("--prompt")) request.prompts = arguments.several.at("--prompt");
  const bool dataset = request.config.data.captions_file.has_value();
  if (!request.prompts.empty()) {
    if (dataset && named_now(resolved, "data.captions_file")) {
      refuse("--prompt and a dataset of captions were both given; expected one of them");
    }
    for (const std::string& prompt : request.prompts)
      if (trim(prompt).empty()) throw Error(ErrorKind::data, "a prompt is empty");
    return;
  }
  if (!dataset) {
    refuse("nothing to generate was given",
           "--prompt \"calm piano\", --captions FILE, or data=tta/musiccaps_captions");
  }
}

void check_captions_file(const Config& config) {
  const std::string& file = *config.data.captions_file;
  if (fs::exists(file)) return;
  throw Error(ErrorKind::io, fmt::format("cannot open captions `{}`: no such file", file))
      .hint(config.data.dataset
                ? fmt::format("save {} there as a table with the columns `{}` and `{}`, or give "
                              "--captions FILE",
                              *config.data.dataset, config.data.id_column, config.data.text_column)
                : "--captions FILE");
}

void choose_output(const Arguments& arguments, const Resolved& resolved, GenerateRequest& request) {
  const std::string output = arguments.value("--out");
  if (output.empty()) return;
  const std::string ending = lower(fs::path(output).extension().string());
  if (ending != ".wav" && ending != ".flac") {
    if (fs::exists(output) && !fs::is_directory(output)) {
      throw Error(ErrorKind::io,
                  fmt::format("cannot write `{}`: it is a file, not a folder", output));
    }
    request.output_folder = output;
    return;
  }
  if (request.prompts.size() != 1) {
    refuse(fmt::format("`{}` is one sound, and many are to be made; expected a folder", output),
           "-o DIR");
  }
  std::string& format = request.config.generation.format;
  const bool flac = ending == ".flac";
  if (named_now(resolved, "generation.format") && flac != (format == "flac")) {
    refuse(fmt::format("generation.format is {}, but the output is `{}`", format, output));
  }
  if (flac) format = "flac";
  const fs::path folder = fs::path(output).has_parent_path() ? fs::path(output).parent_path() : ".";
  const char* wrong = fs::is_directory(output)    ? "it is a folder"
                      : !fs::is_directory(folder) ? "its folder does not exist"
                                                  : nullptr;
  if (wrong) throw Error(ErrorKind::io, fmt::format("cannot write `{}`: {}", output, wrong));
  request.output_file = output;
}

void check_run_id(const Config& config) {
  if (!config.paths.run_id) return;
  const fs::path name = *config.paths.run_id;
  if (!name.empty() && name == name.filename() && name != "." && name != "..") return;
  throw Error(ErrorKind::config,
              fmt::format("`paths.run_id` is \"{}\"; expected the name of a folder, without a path",
                          name.string()));
}

void choose_shard(const Arguments& arguments, GenerateRequest& request) {
  if (!arguments.has("--shard")) return;
  const ShardChoice choice = parse_shard(arguments.value("--shard"));
  request.shard = choice.shard;
  request.shards = choice.shards;
  if (!choice.note.empty()) request.notes.push_back(choice.note);
  std::optional<std::string>& run_id = request.config.paths.run_id;
  if (!run_id && !choice.run_id.empty()) run_id = choice.run_id;
  if (request.shards > 1 && !run_id && request.output_folder.empty()) {
    refuse("the shards of a run must share its folder, and none was named",
           "paths.run_id=NAME, the same for all shards, or -o DIR");
  }
}

void choose_length(const Arguments& arguments, const Resolved& resolved, GenerateRequest& request) {
  if (!arguments.has("--seconds")) return;
  const std::string text = arguments.value("--seconds");
  const auto seconds = parse_double(text);
  if (!seconds || !(*seconds > 0) || *seconds > 3600) {
    refuse(fmt::format("--seconds is `{}`; expected a number above 0, at most 3600", text));
  }
  if (named_now(resolved, "generation.max_new_tokens") &&
      resolved.sources.at("generation.max_new_tokens").layer != Source::Layer::group) {
    refuse("--seconds and generation.max_new_tokens were both given; expected one of them");
  }
  request.seconds = seconds;
}

std::optional<int64_t> slurm(const char* name) {
  const char* value = std::getenv(name);
  return value ? parse_int(value) : std::nullopt;
}

ShardChoice shard_of_array() {
  const auto id = slurm("SLURM_ARRAY_TASK_ID"), count = slurm("SLURM_ARRAY_TASK_COUNT");
  if (!id || !count) return {.note = "--shard auto: no SLURM job array here, all clips are made"};
  const int64_t first = slurm("SLURM_ARRAY_TASK_MIN").value_or(0);
  const int64_t step = std::max<int64_t>(1, slurm("SLURM_ARRAY_TASK_STEP").value_or(1));
  ShardChoice choice{.shard = (*id - first) / step, .shards = *count};
  if (choice.shard < 0 || choice.shard >= choice.shards || (*id - first) % step != 0) {
    throw Error(ErrorKind::config,
                fmt::format("task {} of an array of {} that begins at {} is no shard of it", *id,
                            *count, first))
        .hint("--array=0-2 without holes, or --shard i/n");
  }
  if (const char* job = std::getenv("SLURM_ARRAY_JOB_ID"); job && *job)
    choice.run_id = std::string("job_") + job;
  return choice;
}

}  // namespace

ShardChoice parse_shard(const std::string& text) {
  if (text == "auto") return shard_of_array();
  const std::vector<std::string> parts = split(text, '/');
  const auto shard = parts.size() == 2 ? parse_int(parts[0]) : std::nullopt;
  const auto shards = parts.size() == 2 ? parse_int(parts[1]) : std::nullopt;
  if (!shard || !shards || *shards < 1 || *shard < 0 || *shard >= *shards) {
    refuse(fmt::format("--shard is `{}`; expected i/n with i from 0 to n - 1, or auto", text),
           "the first of three is 0/3, the last 2/3");
  }
  return {.shard = *shard, .shards = *shards};
}

Resolved resolve_generate_settings(const Arguments& arguments) {
  Arguments words = arguments;
  for (std::string& word : words.rest)
    if (const auto meant = batch_size_word(word)) word = *meant;
  std::vector<std::string> first;
  for (const auto& [flag, key] :
       {std::pair("--batch-size", "generation.batch_size"), std::pair("--seed", "generation.seed"),
        std::pair("--visible-gpus", "training.visible_gpus")}) {
    if (arguments.has(flag)) first.push_back(fmt::format("{}={}", key, arguments.value(flag)));
  }
  words.rest.insert(words.rest.begin(), first.begin(), first.end());
  return resolve_settings(words);
}

GenerateRequest generate_request(const Arguments& arguments, const Resolved& resolved) {
  GenerateRequest request{.config = resolved.config, .settings_yaml = print_config(resolved)};
  request.fresh = arguments.has("--fresh");
  request.plan = arguments.has("--plan");
  request.json = arguments.has("--json");
  choose_captions(arguments, resolved, request);
  choose_output(arguments, resolved, request);
  check_run_id(request.config);
  choose_shard(arguments, request);
  choose_length(arguments, resolved, request);
  choose_model(arguments, resolved, request);
  if (request.prompts.empty()) check_captions_file(request.config);
  request.audio_prompt = arguments.value("--audio-prompt");
  if (!request.audio_prompt.empty() && !fs::is_regular_file(request.audio_prompt)) {
    throw Error(ErrorKind::io, fmt::format("cannot open the audio prompt `{}`: no such file",
                                           request.audio_prompt));
  }
  if (!request.config.generation.use_cache) {
    request.notes.emplace_back(
        "generation.use_cache is false: every step computes all earlier ones again, which is slow "
        "and saves little; generation.kv_cache=int8 or a smaller batch saves memory");
  }
  return request;
}

DeviceRequest generate_device_request(const Arguments& arguments, const Config& config) {
  DeviceRequest request = device_request(arguments);
  request.visible_gpus = config.training.visible_gpus;
  return request;
}

Captions captions_of(const GenerateRequest& request) {
  const DataConfig& data = request.config.data;
  Captions captions =
      request.prompts.empty()
          ? read_captions(*data.captions_file, {.id = data.id_column,
                                                .text = data.text_column,
                                                .audio_prompt = data.audio_prompt_column,
                                                .fraction = data.subset_size,
                                                .seed = static_cast<uint64_t>(data.subset_seed)})
          : captions_of_prompts(request.prompts);
  if (!request.audio_prompt.empty()) {
    for (Caption& caption : captions.rows) caption.audio_prompt = request.audio_prompt;
  }
  return captions;
}

MusicEngineOptions music_engine_options(const Config& config) {
  const std::string& type = config.model.dtype;
  return {.precision = type == "float32"    ? "fp32"
                       : type == "bfloat16" ? "bf16"
                       : type == "float16"  ? "fp16"
                                            : "auto",
          .cache = config.generation.kv_cache,
          .use_cache = config.generation.use_cache,
          .pin_memory = config.data.pin_memory};
}

std::vector<Option> generate_options() {
  return {{"--model", "DIR", "a MusicGen folder; else model.name in paths.model_dir"},
          {"--prompt", "TEXT", "what to make; may be repeated", "", /*repeats=*/true},
          {"--audio-prompt", "FILE", "a sound that every clip goes on from"},
          {"--out", "PATH", "one .wav or .flac for one prompt, or the run's folder", "-o"},
          {"--seconds", "S", "length of a clip (else generation.max_new_tokens)"},
          {"--batch-size", "N|auto", "clips at once over all GPUs", "-b"},
          {"--seed", "N", "equal seeds sound equally (default 0)"},
          {"--shard", "I/N", "makes every Nth clip from the Ith (0 is first); auto: SLURM's array"},
          {"--visible-gpus", "LIST", "use only these GPUs"},
          {"--plan", "", "print memory, batch, steps, seconds and hours, and stop"},
          {"--fresh", "", "a new folder instead of going on in the one there is"},
          {"--json", "", "one JSON document"}};
}

}  // namespace tandem
