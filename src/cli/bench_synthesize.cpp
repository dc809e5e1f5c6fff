#include "cli/bench_synthesize.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/session.h"
#include "device/registry.h"
#include "models/xtts/xtts_config.h"
#include "observe/peer_program.h"
#include "observe/speech_bench.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

SpeechPrecision precision_of(const std::string& name) {
  if (name == "auto") return SpeechPrecision::automatic;
  if (name == "fp32") return SpeechPrecision::fp32;
  if (name == "tf32") return SpeechPrecision::tf32;
  if (name == "bf16") return SpeechPrecision::bf16;
  if (name == "fp16") return SpeechPrecision::fp16;
  throw Error(ErrorKind::usage,
              "--precision is `" + name + "`; expected auto, fp32, tf32, bf16 or fp16");
}

int64_t count_of(const std::string& flag, const std::string& text) {
  const auto value = parse_int(text);
  if (value && *value > 0 && *value <= 4096) return *value;
  throw Error(ErrorKind::usage, flag + " is `" + text + "`; expected whole numbers from 1 to 4096");
}

SpeechBenchOptions options_of(const Arguments& arguments) {
  SpeechBenchOptions options;
  options.model_size = arguments.value("--size", "normal");
  options.codes = count_of("--codes", arguments.value("--codes", "215"));
  options.precision = precision_of(arguments.value("--precision", "auto"));
  const int64_t most = xtts_preset(options.model_size).gpt.max_new_codes();
  if (options.codes > most) {
    throw Error(
        ErrorKind::usage,
        fmt::format("--codes is {}; a model of this size speaks {} at most", options.codes, most));
  }
  options.batches.clear();
  for (const std::string& word : split(arguments.value("--batches", "16,64,256"), ','))
    options.batches.push_back(count_of("--batches", word));
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

void print_document(const SpeechBench& bench, const nlohmann::json& peer) {
  nlohmann::ordered_json document;
  const nlohmann::json theirs = peer_rate(peer, "eager", 1);
  document["tandem"] = bench.one.codes_per_second;
  document["peer"] = theirs;
  document["ratio"] = theirs.is_number()
                          ? nlohmann::json(bench.one.codes_per_second / theirs.get<double>())
                          : nlohmann::json();
  document["floor"] = bench.floor() > 0 ? nlohmann::json(1 / bench.floor()) : nlohmann::json();
  document["unit"] = "codes/s, one stream";
  document["device"] = bench.device;
  document["precision"] = bench.precision;
  document["times_real_time"] = bench.one.times_real_time;
  document["step_ms"] = 1e3 * bench.one_step;
  document["floor_ms"] = 1e3 * bench.floor();
  document["first_sound_ms"] = {{"p50", 1e3 * bench.first_sound_p50},
                                {"p95", 1e3 * bench.first_sound_p95}};
  for (const BatchRate& rate : bench.many) {
    document["batches"][std::to_string(rate.batch)] = {
        {"codes_per_second", rate.codes_per_second},
        {"times_real_time", rate.times_real_time},
        {"peak_memory_bytes", rate.peak_memory_bytes},
        {"peer_eager", peer_rate(peer, "eager", rate.batch)},
        {"peer_compiled", peer_rate(peer, "compile", rate.batch)}};
  }
  if (peer.is_object()) document["peer_details"] = peer;
  print(document.dump(2));
}

void print_rows(const SpeechBench& bench, const nlohmann::json& peer, bool csv) {
  const char* row = csv ? "{},{},{},{},{},{}\n" : "| {} | {} | {} | {} | {} | {} |\n";
  std::string text = fmt::format(fmt::runtime(row), "texts at once", "codes/s", "times real time",
                                 "peer codes/s", "peer compiled", "ratio");
  if (!csv) text += "|---|---|---|---|---|---|\n";
  const auto number = [](const nlohmann::json& value) {
    return value.is_number() ? fmt::format("{:.0f}", value.get<double>()) : std::string();
  };
  const auto add = [&](const BatchRate& rate) {
    const nlohmann::json eager = peer_rate(peer, "eager", rate.batch);
    text += fmt::format(fmt::runtime(row), rate.batch, fmt::format("{:.0f}", rate.codes_per_second),
                        fmt::format("{:.0f}", rate.times_real_time), number(eager),
                        number(peer_rate(peer, "compile", rate.batch)),
                        eager.is_number()
                            ? fmt::format("{:.1f}", rate.codes_per_second / eager.get<double>())
                            : std::string());
  };
  add(bench.one);
  for (const BatchRate& rate : bench.many) add(rate);
  text += fmt::format("\n{}, {}; first sound {:.1f} ms (p95 {:.1f})", bench.device, bench.precision,
                      1e3 * bench.first_sound_p50, 1e3 * bench.first_sound_p95);
  if (bench.floor() > 0 && bench.one_step > 0)
    text += fmt::format("; a step {:.3f} ms, {:.2f} times the {:.3f} ms its weights take to read",
                        1e3 * bench.one_step, bench.one_step / bench.floor(), 1e3 * bench.floor());
  print(text + "\n");
}

}  // namespace

int bench_synthesize_command(const Arguments& arguments, const Config& config) {
  const std::string format = arguments.value("--format", "md");
  if (format != "md" && format != "csv" && format != "json")
    throw Error(ErrorKind::usage, "--format is `" + format + "`; expected md, csv or json");
  const SpeechBenchOptions options = options_of(arguments);
  configure_or_stop(device_request(arguments, config));
  const Strategy strategy = setup_gpu_strategy(false);
  const SpeechBench bench =
      bench_speech(DeviceRegistry::get().find(strategy.replicas.front()), options);
  const bool compiled = arguments.has("--peer-compile");
  const nlohmann::json peer =
      arguments.has("--peer") || compiled ? run_peer(options, compiled) : nlohmann::json();
  format == "json" ? print_document(bench, peer) : print_rows(bench, peer, format == "csv");
  return 0;
}

}  // namespace tandem
