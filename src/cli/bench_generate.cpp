#include "cli/bench_generate.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/session.h"
#include "device/registry.h"
#include "models/musicgen/musicgen.h"
#include "observe/music_bench.h"
#include "observe/peer_program.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr int64_t peer_steps = 60;  // of transformers: a whole clip takes it a minute and a half

struct SizeBench {
  MusicBenchOptions options;
  MusicBench bench;
  nlohmann::json peer;  // null: not run
};

int64_t count_of(const std::string& flag, const std::string& text, int64_t most) {
  const auto value = parse_int(text);
  if (value && *value > 0 && *value <= most) return *value;
  throw Error(ErrorKind::usage,
              fmt::format("{} is `{}`; expected whole numbers from 1 to {}", flag, text, most));
}

MusicBenchOptions options_of(const Arguments& arguments, const std::string& size) {
  MusicBenchOptions options{.size = size};
  const MusicDecoderSize model = Musicgen::config_of(size).decoder;
  options.steps = count_of("--steps", arguments.value("--steps", "1500"), model.positions - 1);
  options.cache = arguments.value("--kv", "same");
  if (options.cache != "same" && options.cache != "int8")
    throw Error(ErrorKind::usage, "--kv is `" + options.cache + "`; expected same or int8");
  options.precision = arguments.value("--precision", "auto");
  if (arguments.has("--whole")) options.whole_batches = 2;
  options.batches.clear();
  for (const std::string& word : split(arguments.value("--batches", "1,8,32,64,128"), ','))
    options.batches.push_back(count_of("--batches", word, 4096));
  return options;
}

nlohmann::json run_peer(const MusicBenchOptions& options) {
  std::vector<std::string> words{
      reference_python(), peer_script("musicgen.py"),
      "--size",           options.size,
      "--steps",          std::to_string(std::min(peer_steps, options.steps)),
      "--text",           std::to_string(options.text_tokens),
      "--batch"};
  for (const int64_t batch : options.batches) words.push_back(std::to_string(batch));
  const auto peer =
      nlohmann::json::parse(run_peer_program(words), nullptr, /*allow_exceptions=*/false);
  if (!peer.is_object() || !peer.contains("batches"))
    throw Error(ErrorKind::corrupt, "the peer program printed no JSON object with `batches`");
  return peer;
}

// Milliseconds a step of the peer, or null.
nlohmann::json peer_step(const SizeBench& size, int64_t batch) {
  const std::string key = std::to_string(batch);
  if (!size.peer.is_object() || !size.peer["batches"].contains(key)) return {};
  const nlohmann::json& entry = size.peer["batches"][key];
  return entry.contains("ms_per_step") ? entry["ms_per_step"] : nlohmann::json();
}

nlohmann::ordered_json entry_of(const SizeBench& size, const MusicBatchBench& batch) {
  if (!batch.fits) return {{"error", "out of memory"}};
  const nlohmann::json peer = peer_step(size, batch.batch);
  nlohmann::ordered_json entry{
      {"ms_per_step", 1e3 * batch.step_seconds},
      {"floor_ms", 1e3 * batch.floor},
      {"times_floor", batch.step_seconds / batch.floor},
      {"clips_per_second", batch.clips_per_second},
      {"decode_seconds", batch.decode_seconds},
      {"sound_seconds", batch.sound_seconds},
      {"memory_bytes", batch.memory_bytes},
      {"captures", batch.captures},
      {"peer_ms_per_step", peer},
      {"ratio", peer.is_number() ? nlohmann::json(peer.get<double>() / (1e3 * batch.step_seconds))
                                 : nlohmann::json()}};
  if (batch.whole_seconds > 0) {
    entry["whole_seconds"] = batch.whole_seconds;
    entry["whole_over_decode"] = batch.whole_seconds / batch.decode_seconds;
  }
  return entry;
}

// At the top: clips a second of the first size at its largest batch, the peer's at the same batch,
// and the most that reading memory allows.
void print_document(const std::vector<SizeBench>& sizes) {
  nlohmann::ordered_json document{
      {"tandem", nullptr}, {"peer", nullptr}, {"ratio", nullptr}, {"floor", nullptr}};
  const SizeBench& first = sizes.front();
  for (const MusicBatchBench& batch : first.bench.batches) {
    if (!batch.fits) continue;
    const double clips = static_cast<double>(batch.batch),
                 steps = static_cast<double>(first.options.steps);
    const nlohmann::json peer = peer_step(first, batch.batch);
    document["tandem"] = batch.clips_per_second;
    document["floor"] = clips / (batch.floor * steps);
    document["peer"] = nullptr;
    document["ratio"] = nullptr;
    if (!peer.is_number()) continue;
    document["peer"] = clips / (1e-3 * peer.get<double>() * steps);
    document["ratio"] = batch.clips_per_second / document["peer"].get<double>();
  }
  document["unit"] = "clips/s, largest batch";
  document["device"] = first.bench.device;
  document["precision"] = first.bench.precision;
  document["steps"] = first.options.steps;
  document["cache"] = first.options.cache;
  for (const SizeBench& size : sizes) {
    for (const MusicBatchBench& batch : size.bench.batches)
      document["sizes"][size.options.size][std::to_string(batch.batch)] = entry_of(size, batch);
    if (size.peer.is_object()) document["peer_details"][size.options.size] = size.peer;
  }
  print(document.dump(2));
}

void print_rows(const std::vector<SizeBench>& sizes, bool csv) {
  const char* row = csv ? "{},{},{},{},{},{},{},{},{},{}\n"
                        : "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n";
  std::string text =
      fmt::format(fmt::runtime(row), "size", "clips at once", "ms/step", "floor ms", "times floor",
                  "clips/s", "GB", "whole / decode", "peer ms/step", "ratio");
  if (!csv) text += "|---|---|---|---|---|---|---|---|---|---|\n";
  for (const SizeBench& size : sizes) {
    for (const MusicBatchBench& batch : size.bench.batches) {
      const nlohmann::json peer = peer_step(size, batch.batch);
      const auto number = [&](const char* form, double value) {
        return batch.fits ? fmt::format(fmt::runtime(form), value) : std::string();
      };
      text += fmt::format(
          fmt::runtime(row), size.options.size, batch.batch,
          batch.fits ? number("{:.3f}", 1e3 * batch.step_seconds) : "out of memory",
          fmt::format("{:.3f}", 1e3 * batch.floor),
          number("{:.2f}", batch.step_seconds / batch.floor),
          number("{:.2f}", batch.clips_per_second), number("{:.1f}", 1e-9 * batch.memory_bytes),
          batch.whole_seconds > 0 ? number("{:.3f}", batch.whole_seconds / batch.decode_seconds)
                                  : std::string(),
          peer.is_number() ? fmt::format("{:.1f}", peer.get<double>()) : std::string(),
          peer.is_number() && batch.fits
              ? fmt::format("{:.1f}", peer.get<double>() / (1e3 * batch.step_seconds))
              : std::string());
    }
  }
  const SizeBench& first = sizes.front();
  text += fmt::format(
      "\n{}, {}, cache {}, mean of all {} steps of a clip, captions of {} tokens, guidance 3; "
      "floor at {:.1f} TB/s\n",
      first.bench.device, first.bench.precision, first.options.cache, first.options.steps,
      first.options.text_tokens, 1e-12 * first.options.bandwidth);
  if (first.peer.is_object())
    text += fmt::format("peer: {}, mean of its first {} steps, without its codec\n",
                        first.peer.value("peer", ""), first.peer.value("steps", 0));
  print(text);
}

}  // namespace

int bench_generate_command(const Arguments& arguments, const Config& config) {
  const std::string format = arguments.value("--format", "md");
  if (format != "md" && format != "csv" && format != "json")
    throw Error(ErrorKind::usage, "--format is `" + format + "`; expected md, csv or json");
  std::vector<SizeBench> sizes;
  for (const std::string& size : split(arguments.value("--size", "small"), ','))
    sizes.push_back({.options = options_of(arguments, size)});
  configure_or_stop(device_request(arguments, config));
  const Strategy strategy = setup_gpu_strategy(false);
  LogicalDevice& device = DeviceRegistry::get().find(strategy.replicas.front());
  for (SizeBench& size : sizes) {
    size.bench = bench_music(device, size.options);
    if (arguments.has("--peer")) size.peer = run_peer(size.options);
  }
  format == "json" ? print_document(sizes) : print_rows(sizes, format == "csv");
  return 0;
}

}  // namespace tandem
