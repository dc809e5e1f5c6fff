// `tandem bench synthesize`.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/bench_list.h"
#include "device/logical_device.h"
#include "device/registry.h"
#include "generate/synthesizer_engines.h"
#include "models/xtts/xtts_config.h"
#include "observe/peer_program.h"
#include "observe/speech_bench.h"
#include "tandem/error.h"

namespace tandem {
namespace {

SpeechBenchOptions options_of(const Arguments& arguments) {
  SpeechBenchOptions options;
  options.model_size = arguments.value("--size", "normal");
  options.codes = count_option(arguments, "--codes", "215", 4096);
  options.precision = speech_precision(arguments.value("--precision", "auto"));
  const int64_t most = xtts_preset(options.model_size).gpt.max_new_codes();
  if (options.codes > most) {
    throw Error(
        ErrorKind::usage,
        fmt::format("--codes is {}; a model of this size speaks {} at most", options.codes, most));
  }
  options.batches = count_list(arguments, "--batches", "16,64,256", 4096);
  return options;
}

// Codes a second of transformers' GPT-2 of the same size.
nlohmann::json run_peer(const SpeechBenchOptions& options, bool compiled) {
  const XttsGptSize size = xtts_preset(options.model_size).gpt;
  std::vector<std::string> words{reference_python(), peer_script("xtts_gpt.py")};
  if (compiled) words.push_back("--compile");
  const auto add = [&](const char* flag, int64_t value) {
    words.insert(words.end(), {flag, std::to_string(value)});
  };
  add("--layers", size.layers);
  add("--width", size.width);
  add("--heads", size.heads);
  add("--tokens", size.audio_tokens);
  add("--prompt", 32 + options.text_tokens + 3);
  add("--codes", options.codes);
  words.push_back("--batch");
  words.push_back("1");
  for (const int64_t batch : options.batches) words.push_back(std::to_string(batch));
  const auto peer =
      nlohmann::json::parse(run_peer_program(words), nullptr, /*allow_exceptions=*/false);
  if (!peer.is_object() || !peer.contains("eager"))
    throw Error(ErrorKind::corrupt, "the peer program printed no JSON object with `eager`");
  return peer;
}

nlohmann::json peer_rate(const nlohmann::json& peer, const char* mode, int64_t batch) {
  const std::string key = std::to_string(batch);
  return peer.is_object() && peer.contains(mode) && peer[mode].contains(key) ? peer[mode][key]
                                                                             : nlohmann::json();
}

Figure fact(const char* name, const char* unit, const nlohmann::json& value) {
  Figure figure{.name = name, .unit = unit, .title = name, .better = Better::neither};
  if (value.is_number()) figure.values = {value.get<double>()};
  return figure;
}

std::vector<double> known(double value) {
  return value > 0 ? std::vector{value} : std::vector<double>();
}

BenchRow row_of(const BatchRate& rate, const nlohmann::json& peer) {
  const std::string batch = std::to_string(rate.batch);
  BenchRow row{.path = {"batches", batch}, .table = "texts at once", .label = batch};
  row.figures = against_peer({.name = "codes_per_second",
                              .unit = "codes/s",
                              .title = "tandem",
                              .values = {rate.codes_per_second}},
                             "peer_eager", peer_rate(peer, "eager", rate.batch));
  Figure compiled = fact("peer_compiled", "codes/s", peer_rate(peer, "compile", rate.batch));
  compiled.title = "peer compiled";
  row.figures.push_back(std::move(compiled));
  row.figures.push_back({.name = "gpt_codes_per_second",
                         .unit = "codes/s",
                         .title = "tandem's GPT alone",
                         .values = known(rate.gpt_codes_per_second)});
  row.figures.push_back({.name = "times_real_time",
                         .unit = "",
                         .title = "times real time",
                         .better = Better::neither,  // as codes a second
                         .values = {rate.times_real_time}});
  row.figures.push_back({.name = "peak_memory_bytes",
                         .unit = "bytes",
                         .better = Better::lower,
                         .values = known(rate.peak_memory_bytes)});
  return row;
}

// Of one stream: a step of the GPT alone, and the time until a first sound.
void add_one_stream(BenchRecord& record, const SpeechBench& bench) {
  const bool known = bench.floor() > 0 && bench.one_step > 0;
  const auto step = [&](double seconds) {
    return known ? std::vector{1e3 * seconds} : std::vector<double>();
  };
  record.rows.push_back({.table = "one stream",
                         .label = "a step of the GPT",
                         .figures = {{.name = "step_ms",
                                      .unit = "ms",
                                      .better = Better::lower,
                                      .values = step(bench.one_step)},
                                     {.name = "floor_ms",
                                      .unit = "ms",
                                      .title = "floor",
                                      .better = Better::neither,
                                      .values = step(bench.floor())}}});
  for (const StepPath& path : bench.paths)
    record.rows.push_back({.path = {"paths", path.name},
                           .table = "one stream by other kernels",
                           .label = path.name,
                           .figures = {{.name = "step_ms",
                                        .unit = "ms",
                                        .better = Better::neither,
                                        .values = {1e3 * path.seconds}}}});
  record.rows.push_back({.path = {"first_sound_ms"},
                         .table = "first sound",
                         .label = "8 codes",
                         .figures = {{.name = "p50",
                                      .unit = "ms",
                                      .title = "p50",
                                      .better = Better::lower,
                                      .values = {1e3 * bench.first_sound_p50}},
                                     {.name = "p95",
                                      .unit = "ms",
                                      .title = "p95",
                                      .better = Better::neither,  // of 50: the third worst
                                      .values = {1e3 * bench.first_sound_p95}}}});
}

void check(const BenchJob& job) { options_of(job.arguments); }

BenchRecord run(const BenchJob& job) {
  const SpeechBenchOptions options = options_of(job.arguments);
  const SpeechBench bench = bench_speech(DeviceRegistry::get().find(job.model_device), options);
  const bool compiled = job.arguments.has("--peer-compile");
  const nlohmann::json peer =
      job.arguments.has("--peer") || compiled ? run_peer(options, compiled) : nlohmann::json();
  BenchRecord record;
  BenchRow top{.figures = against_peer(
                   {.name = "tandem", .unit = "codes/s", .values = {bench.one.codes_per_second}},
                   "peer", peer_rate(peer, "eager", 1))};
  top.figures.front().better = Better::neither;  // the row of one text says the same
  top.figures.push_back(
      fact("floor", "codes/s",
           bench.floor() > 0 ? nlohmann::json(1 / bench.floor()) : nlohmann::json()));
  top.figures.push_back(fact("times_real_time", "", bench.one.times_real_time));
  record.rows.push_back(std::move(top));
  record.rows.push_back(row_of(bench.one, peer));
  for (const BatchRate& rate : bench.many)
    if (rate.batch != 1) record.rows.push_back(row_of(rate, peer));
  add_one_stream(record, bench);
  record.facts = {{"unit", "codes/s, one stream; floor: its weights read once a code"},
                  {"device", bench.device},
                  {"precision", bench.precision}};
  record.note = bench.device + ", " + bench.precision;
  if (peer.is_object()) record.peer_details = peer.dump();
  return record;
}

}  // namespace

Bench synthesize_bench() {
  return {.name = "synthesize",
          .summary = "XTTS speech: codes a second, times real time, first sound",
          .reads_settings = false,
          .check = check,
          .run = run};
}

}  // namespace tandem
