#include "cli/bench_train.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/session.h"
#include "device/registry.h"
#include "models/xtts/xtts_config.h"
#include "observe/peer_program.h"
#include "observe/train_bench.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

// One way to run the step.
struct Row {
  std::string name;
  TrainBenchOptions options;
  TrainBench bench;
};

std::vector<Row> run_all(const Arguments& arguments, LogicalDevice& device) {
  TrainBenchOptions options;
  options.model_size = arguments.value("--size", "normal");
  options.precision = arguments.value("--precision", "bf16");
  xtts_preset(options.model_size);  // a size that does not exist is told before anything runs
  std::vector<Row> rows;
  const auto add = [&](const std::string& name, const TrainBenchOptions& asked) {
    rows.push_back({name, asked, bench_training(device, asked)});
  };
  for (const std::string& word : split(arguments.value("--batches", "16,3"), ',')) {
    const auto batch = parse_int(word);
    if (!batch || *batch < 1 || *batch > 4096)
      throw Error(ErrorKind::usage, "--batches is `" + word + "`; expected whole numbers");
    options.rows = *batch;
    add(fmt::format("batch {}", *batch), options);
  }
  if (!arguments.has("--ways")) return rows;
  options.rows = rows.front().options.rows;
  for (const bool graph : {false, true}) {
    for (const bool fusion : {false, true}) {
      TrainBenchOptions way = options;
      way.graph = graph;
      way.fusion = fusion;
      add(fmt::format("batch {}, graph mode {}, fusion {}", way.rows, graph ? "on" : "off",
                      fusion ? "on" : "off"),
          way);
    }
  }
  TrainBenchOptions way = options;
  way.recompute = true;
  add(fmt::format("batch {}, recompute", way.rows), way);
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
    if (row.name.find(',') == std::string::npos) words.push_back(std::to_string(row.options.rows));
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

void print_document(const std::vector<Row>& rows, const nlohmann::json& peer) {
  nlohmann::ordered_json document;
  const Row& first = rows.front();
  const nlohmann::json theirs = peer_rate(peer, "bf16", first);
  document["tandem"] = first.bench.tokens_per_second;
  document["peer"] = theirs;
  document["ratio"] = theirs.is_number()
                          ? nlohmann::json(first.bench.tokens_per_second / theirs.get<double>())
                          : nlohmann::json();
  document["floor"] = nullptr;
  document["unit"] = "tokens/s, a whole optimizer step";
  for (const Row& row : rows) {
    document["rows"][row.name] = {{"tokens_per_second", row.bench.tokens_per_second},
                                  {"step_ms", 1e3 * row.bench.step_seconds},
                                  {"peak_memory_bytes", row.bench.peak_bytes},
                                  {"flops_per_second", row.bench.flops_per_second},
                                  {"captures", row.bench.captures}};
  }
  if (peer.is_object()) document["peer_details"] = peer;
  print(document.dump(2));
}

void print_rows(const std::vector<Row>& rows, const nlohmann::json& peer, bool csv) {
  const char* line =
      csv ? "{},{},{},{},{},{},{},{}\n" : "| {} | {} | {} | {} | {} | {} | {} | {} |\n";
  std::string text = fmt::format(fmt::runtime(line), "step", "tok/s", "ms", "GiB", "TFLOP/s",
                                 "peer tok/s", "peer compiled", "ratio");
  if (!csv) text += "|---|---|---|---|---|---|---|---|\n";
  const auto number = [](const nlohmann::json& value) {
    return value.is_number() ? fmt::format("{:.0f}", value.get<double>()) : std::string();
  };
  for (const Row& row : rows) {
    const nlohmann::json theirs = peer_rate(peer, "bf16", row);
    text += fmt::format(
        fmt::runtime(line), row.name, fmt::format("{:.0f}", row.bench.tokens_per_second),
        fmt::format("{:.1f}", 1e3 * row.bench.step_seconds),
        fmt::format("{:.1f}", row.bench.peak_bytes / (1 << 30)),
        fmt::format("{:.0f}", row.bench.flops_per_second / 1e12), number(theirs),
        number(peer_rate(peer, "compile", row)),
        theirs.is_number()
            ? fmt::format("{:.2f}", row.bench.tokens_per_second / theirs.get<double>())
            : "");
  }
  print(text);
}

}  // namespace

int bench_train_command(const Arguments& arguments, const Config& config) {
  const std::string format = arguments.value("--format", "md");
  if (format != "md" && format != "csv" && format != "json")
    throw Error(ErrorKind::usage, "--format is `" + format + "`; expected md, csv or json");
  configure_or_stop(device_request(arguments, config));
  const Strategy strategy = setup_gpu_strategy(false);
  const std::vector<Row> rows =
      run_all(arguments, DeviceRegistry::get().find(strategy.replicas.front()));
  const bool compiled = arguments.has("--peer-compile");
  const nlohmann::json peer =
      arguments.has("--peer") || compiled ? run_peer(rows, compiled) : nlohmann::json();
  format == "json" ? print_document(rows, peer) : print_rows(rows, peer, format == "csv");
  return 0;
}

}  // namespace tandem
