// `tandem bench train`.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/bench_list.h"
#include "device/logical_device.h"
#include "device/registry.h"
#include "models/xtts/xtts_config.h"
#include "observe/peer_program.h"
#include "observe/product_rate.h"
#include "observe/train_bench.h"
#include "tandem/error.h"

namespace tandem {
namespace {

// One way to run the step.
struct Row {
  std::string name;
  TrainBenchOptions options;
  bool has_peer = true;
};

constexpr int64_t least_places = 64;

std::string precision_words(const TrainBenchOptions& options) {
  return fmt::format("{}{}{}", options.precision, options.fp8 ? " with 8-bit products" : "",
                     options.conditioning ? "" : ", the GPT alone");
}

// A row is a third text and two thirds codes, after 32 latents.
int64_t most_places(const XttsGptSize& size) {
  return 32 + std::min(3 * size.max_text_tokens, 3 * size.max_audio_tokens / 2);
}

std::vector<Row> rows_of(const Arguments& arguments) {
  TrainBenchOptions options;
  options.model_size = arguments.value("--size", "normal");
  options.precision =
      choice_option(arguments, "--precision", "bf16", {"fp32", "tf32", "bf16", "fp16"});
  options.fp8 = arguments.has("--fp8");
  options.conditioning = !arguments.has("--gpt-alone");
  const int64_t most = most_places(xtts_preset(options.model_size).gpt);
  options.places =
      count_option(arguments, "--places", std::to_string(std::min(options.places, most)), most);
  if (options.places < least_places)
    throw Error(ErrorKind::usage,
                fmt::format("--places is {}; a row has {} at least", options.places, least_places));
  const bool peer = arguments.has("--peer") || arguments.has("--peer-compile");
  if (peer && options.places != TrainBenchOptions().places)
    throw Error(ErrorKind::usage, fmt::format("--peer runs rows of {} places, and these have {}",
                                              TrainBenchOptions().places, options.places))
        .hint("leave --places and --size as they are, or leave --peer out");
  std::vector<Row> rows;
  for (const int64_t batch : count_list(arguments, "--batches", "16,3", 4096)) {
    options.rows = batch;
    rows.push_back({fmt::format("batch {}", batch), options});
  }
  if (!arguments.has("--ways")) return rows;
  options.rows = rows.front().options.rows;
  for (const bool graph : {false, true}) {
    for (const bool fusion : {false, true}) {
      TrainBenchOptions way = options;
      way.graph = graph;
      way.fusion = fusion;
      rows.push_back({fmt::format("batch {}, graph mode {}, fusion {}", way.rows,
                                  graph ? "on" : "off", fusion ? "on" : "off"),
                      way, false});
    }
  }
  TrainBenchOptions way = options;
  way.recompute = true;
  rows.push_back({fmt::format("batch {}, recompute", way.rows), way, false});
  return rows;
}

// The peer's figures: {"autocast": {"16": {"tokens_per_second": …}}, "bf16": …, "compile": …}. What
// it calls bf16 has its weights in that type, which is faster and less exact than ours.
nlohmann::json run_peer(const std::vector<Row>& rows, bool compiled) {
  const XttsGptSize size = xtts_preset(rows.front().options.model_size).gpt;
  std::vector<std::string> words{reference_python(), peer_script("xtts_gpt_train.py")};
  const auto add = [&](const char* flag, int64_t value) {
    words.insert(words.end(), {flag, std::to_string(value)});
  };
  add("--layers", size.layers);
  add("--width", size.width);
  add("--heads", size.heads);
  words.insert(words.end(), {"--ways", "autocast", "bf16"});
  if (compiled) words.push_back("compile");
  words.push_back("--batch");
  for (const Row& row : rows)
    if (row.has_peer) words.push_back(std::to_string(row.options.rows));
  const auto peer = nlohmann::json::parse(run_peer_program(words), nullptr, false);
  if (!peer.is_object() || !peer.contains("bf16"))
    throw Error(ErrorKind::corrupt, "the peer program printed no JSON object with `bf16`");
  return peer;
}

nlohmann::json peer_rate(const nlohmann::json& peer, const char* mode, const Row& row) {
  const std::string key = std::to_string(row.options.rows);
  if (!peer.is_object() || !peer.contains(mode) || !peer[mode].contains(key)) return {};
  const auto& found = peer[mode][key];
  return found.is_object() ? found.value("tokens_per_second", nlohmann::json()) : found;
}

// Tokens a second if the step were its products and nothing else, at the rate of the device's own.
double floor_rate(const TrainBenchOptions& options, double product_rate) {
  return product_rate * static_cast<double>(options.rows * options.places) /
         training_flops(options);
}

// Nothing counts the CPU's memory.
std::vector<double> known(double bytes) {
  return bytes > 0 ? std::vector{bytes} : std::vector<double>();
}

BenchRow row_of(const Row& row, const TrainBench& bench, const nlohmann::json& peer) {
  BenchRow out{.path = {"rows", row.name}, .table = "step", .label = row.name};
  out.figures = against_peer({.name = "tokens_per_second",
                              .unit = "tok/s",
                              .title = "tandem",
                              .values = {bench.tokens_per_second}},
                             "peer_tokens_per_second", peer_rate(peer, "bf16", row));
  const nlohmann::json compiled = peer_rate(peer, "compile", row);
  out.figures.push_back({.name = "peer_compiled",
                         .unit = "tok/s",
                         .title = "peer compiled",
                         .better = Better::neither,
                         .values = compiled.is_number() ? std::vector{compiled.get<double>()}
                                                        : std::vector<double>()});
  out.figures.push_back({.name = "step_ms",
                         .unit = "ms",
                         .better = Better::lower,
                         .values = {1e3 * bench.step_seconds}});
  out.figures.push_back({.name = "peak_memory_bytes",
                         .unit = "bytes",
                         .better = Better::lower,
                         .values = known(bench.peak_bytes)});
  out.figures.push_back({.name = "flops_per_second",
                         .unit = "FLOP/s",
                         .better = Better::higher,
                         .values = {bench.flops_per_second}});
  out.figures.push_back({.name = "captures",
                         .unit = "",
                         .title = "captures",
                         .better = Better::neither,
                         .values = {static_cast<double>(bench.captures)}});
  return out;
}

void check(const BenchJob& job) { rows_of(job.arguments); }

BenchRecord run(const BenchJob& job) {
  const std::vector<Row> rows = rows_of(job.arguments);
  LogicalDevice& device = DeviceRegistry::get().find(job.model_device);
  std::vector<TrainBench> benches;
  for (const Row& row : rows) benches.push_back(bench_training(device, row.options));
  const bool compiled = job.arguments.has("--peer-compile");
  const nlohmann::json peer =
      job.arguments.has("--peer") || compiled ? run_peer(rows, compiled) : nlohmann::json();
  const double products = product_rate(device, rows.front().options.precision);
  BenchRecord record;
  BenchRow top{
      .figures = against_peer(
          {.name = "tandem", .unit = "tok/s", .values = {benches.front().tokens_per_second}},
          "peer", peer_rate(peer, "bf16", rows.front()))};
  top.figures.front().better = Better::neither;  // the first row says the same
  top.figures.push_back({.name = "floor",
                         .unit = "tok/s",
                         .better = Better::neither,
                         .values = {floor_rate(rows.front().options, products)}});
  record.rows.push_back(std::move(top));
  for (size_t i = 0; i < rows.size(); ++i) record.rows.push_back(row_of(rows[i], benches[i], peer));
  record.facts = {
      {"unit", "tokens/s, a whole optimizer step; floor: its products alone, in the precision"},
      {"device", device.info().hardware},
      {"precision", precision_words(rows.front().options)}};
  record.note = fmt::format("{}, {}; its own products make {:.3g} TFLOP/s", device.info().hardware,
                            precision_words(rows.front().options), products / 1e12);
  if (peer.is_object()) record.peer_details = peer.dump();
  return record;
}

}  // namespace

Bench train_bench() {
  return {.name = "train",
          .summary = "a step of XTTS's GPT: tokens a second, memory",
          .reads_settings = false,
          .check = check,
          .run = run};
}

}  // namespace tandem
