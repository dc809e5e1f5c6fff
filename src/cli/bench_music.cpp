// `tandem bench generate`.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/bench_list.h"
#include "device/registry.h"
#include "models/musicgen/musicgen.h"
#include "observe/music_bench.h"
#include "observe/peer_program.h"
#include "tandem/error.h"

namespace tandem {
namespace {

constexpr int64_t peer_steps = 60;  // of transformers: a whole clip takes it a minute and a half

MusicBenchOptions options_of(const Arguments& arguments) {
  MusicBenchOptions options{.size = arguments.value("--size", "small")};
  const MusicDecoderSize model = Musicgen::config_of(options.size).decoder;
  options.steps = count_option(arguments, "--steps", "1500", model.positions - 1);
  options.cache = choice_option(arguments, "--kv", "same", {"same", "int8"});
  options.precision =
      choice_option(arguments, "--precision", "auto", {"auto", "fp32", "bf16", "fp16"});
  if (arguments.has("--whole")) options.whole_batches = 2;
  options.batches = count_list(arguments, "--batches", "1,8,32,64,128", 4096);
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
nlohmann::json peer_step(const nlohmann::json& peer, int64_t batch) {
  const std::string key = std::to_string(batch);
  if (!peer.is_object() || !peer["batches"].contains(key)) return {};
  const nlohmann::json& entry = peer["batches"][key];
  return entry.contains("ms_per_step") ? entry["ms_per_step"] : nlohmann::json();
}

Figure fact(const char* name, const char* unit, const char* title, double value) {
  return {.name = name, .unit = unit, .title = title, .better = Better::neither, .values = {value}};
}

BenchRow row_of(const MusicBenchOptions& options, const MusicBatchBench& batch,
                const nlohmann::json& peer) {
  const std::string name = std::to_string(batch.batch);
  BenchRow row{.path = {"sizes", options.size, name}, .table = "clips at once", .label = name};
  row.figures = against_peer({.name = "ms_per_step",
                              .unit = "ms/step",
                              .title = "tandem",
                              .better = Better::lower,
                              .values = {1e3 * batch.step_seconds}},
                             "peer_ms_per_step", peer_step(peer, batch.batch));
  row.figures.push_back(fact("floor_ms", "ms", "floor", 1e3 * batch.floor));
  row.figures.push_back({.name = "times_floor",
                         .unit = "",
                         .title = "times floor",
                         .better = Better::neither,
                         .numerator = "ms_per_step",
                         .denominator = "floor_ms"});
  row.figures.push_back(
      {.name = "clips_per_second", .unit = "clips/s", .values = {batch.clips_per_second}});
  row.figures.push_back(fact("decode_seconds", "s", "decoding", batch.decode_seconds));
  row.figures.push_back(fact("sound_seconds", "s", "EnCodec", batch.sound_seconds));
  row.figures.push_back(
      {.name = "memory_bytes",
       .unit = "bytes",
       .better = Better::lower,
       .values = batch.memory_bytes > 0 ? std::vector{batch.memory_bytes} : std::vector<double>()});
  row.figures.push_back(fact("captures", "", "captures", static_cast<double>(batch.captures)));
  if (batch.whole_seconds > 0) {
    row.figures.push_back({.name = "whole_seconds",
                           .unit = "s",
                           .title = "whole",
                           .better = Better::lower,
                           .values = {batch.whole_seconds}});
    row.figures.push_back({.name = "whole_over_decode",
                           .unit = "",
                           .title = "whole / decoding",
                           .better = Better::neither,
                           .numerator = "whole_seconds",
                           .denominator = "decode_seconds"});
  }
  if (batch.fits) return row;
  row.label += " (out of memory)";
  for (Figure& figure : row.figures) figure.values.clear();
  return row;
}

// Clips a second at the largest batch that fits, the peer's there, and the most that reading memory
// allows.
BenchRow top_of(const MusicBenchOptions& options, const MusicBench& bench,
                const nlohmann::json& peer) {
  Figure ours{.name = "tandem", .unit = "clips/s"}, floor{.name = "floor", .unit = "clips/s"};
  nlohmann::json theirs;
  for (const MusicBatchBench& batch : bench.batches) {
    if (!batch.fits) continue;
    const double clips = static_cast<double>(batch.batch),
                 steps = static_cast<double>(options.steps);
    const nlohmann::json step = peer_step(peer, batch.batch);
    ours.values = {batch.clips_per_second};
    floor.values = {clips / (batch.floor * steps)};
    theirs = step.is_number() ? nlohmann::json(clips / (1e-3 * step.get<double>() * steps))
                              : nlohmann::json();
  }
  BenchRow top{.figures = against_peer(ours, "peer", theirs)};
  top.figures.push_back(floor);
  top.figures.front().better = top.figures.back().better = Better::neither;
  return top;
}

void check(const BenchJob& job) { options_of(job.arguments); }

BenchRecord run(const BenchJob& job) {
  const MusicBenchOptions options = options_of(job.arguments);
  const MusicBench bench = bench_music(DeviceRegistry::get().find(job.model_device), options);
  const nlohmann::json peer = job.arguments.has("--peer") ? run_peer(options) : nlohmann::json();
  BenchRecord record;
  record.rows.push_back(top_of(options, bench, peer));
  for (const MusicBatchBench& batch : bench.batches)
    record.rows.push_back(row_of(options, batch, peer));
  for (const StepPath& path : bench.paths)
    record.rows.push_back({.path = {"paths", options.size, path.name},
                           .table = "one clip by other kernels",
                           .label = path.name,
                           .figures = {{.name = "ms_per_step",
                                        .unit = "ms/step",
                                        .better = Better::neither,
                                        .values = {1e3 * path.seconds}}}});
  record.facts = {
      {"unit", fmt::format("clips/s, largest batch; floor: memory read once a step at {:.1f} TB/s",
                           1e-12 * options.bandwidth)},
      {"device", bench.device},
      {"precision", bench.precision},
      {"steps", std::to_string(options.steps)},
      {"cache", options.cache}};
  record.note = fmt::format(
      "{}, {}, cache {}, mean of all {} steps of a clip, captions of {} tokens, guidance 3; "
      "floor at {:.1f} TB/s",
      bench.device, bench.precision, options.cache, options.steps, options.text_tokens,
      1e-12 * options.bandwidth);
  if (peer.is_object()) {
    record.peer_details = peer.dump();
    record.note += fmt::format("\npeer: {}, mean of its first {} steps, without its codec",
                               peer.value("peer", ""), peer.value("steps", 0));
  }
  return record;
}

}  // namespace

Bench music_bench() {
  return {.name = "generate",
          .summary = "MusicGen clips: milliseconds a step, clips a second, the floor of memory",
          .reads_settings = false,
          .check = check,
          .run = run};
}

}  // namespace tandem
