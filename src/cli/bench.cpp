#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "cli/bench_generate.h"
#include "cli/bench_synthesize.h"
#include "cli/bench_train.h"
#include "cli/command.h"
#include "cli/session.h"
#include "config/schema.h"
#include "data/feed/speech_feed.h"
#include "observe/data_bench.h"
#include "observe/peer_program.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

struct QueueRow {
  const char* name;
  QueueCounters counters;
};

std::vector<QueueRow> queues_of(const DataBench& bench) {
  return {{"loaded", bench.queues.loaded},
          {"prepared", bench.queues.prepared},
          {"moved", bench.queues.moved}};
}

const StageRate* find_stage(const std::vector<StageRate>& stages, const std::string& name) {
  for (const StageRate& stage : stages) {
    if (stage.name == name) return &stage;
  }
  return nullptr;
}

std::string ratio_text(double ours, const double* theirs) {
  return theirs && *theirs > 0 ? fmt::format("{:.1f}", ours / *theirs) : "";
}

// Rows of name, ours, peer, ratio; then the queues.
void print_rows(const DataBench& bench, const std::optional<PeerBench>& peer, bool csv) {
  const char* row = csv ? "{},{},{},{}\n" : "| {} | {} | {} | {} |\n";
  std::string text =
      fmt::format(fmt::runtime(row), "stage", "tandem clips/s", "peer clips/s", "ratio");
  if (!csv) text += "|---|---|---|---|\n";
  const auto add = [&](const std::string& name, double ours, const double* theirs) {
    text += fmt::format(fmt::runtime(row), name, fmt::format("{:.0f}", ours),
                        theirs ? fmt::format("{:.0f}", *theirs) : "", ratio_text(ours, theirs));
  };
  for (const StageRate& stage : bench.stages) {
    const StageRate* other = peer ? find_stage(peer->stages, stage.name) : nullptr;
    add(stage.name + " (one thread)", stage.clips_per_second,
        other ? &other->clips_per_second : nullptr);
  }
  add("whole", bench.clips_per_second, peer ? &peer->clips_per_second : nullptr);
  if (bench.steps) {
    const StepBench& steps = *bench.steps;
    text += fmt::format(
        "\nreplayed step {:.2f} ms, fed step {:.2f} ms ({:+.2f} %), waiting {:.2f} %, {} late\n",
        1e3 * steps.replay_step, 1e3 * steps.fed_step,
        100 * (steps.fed_step / steps.replay_step - 1), 100 * steps.wait_share, steps.late);
  }
  text +=
      csv ? "\nqueue,batches,put wait s,get wait s,empty s\n"
          : "\n| queue | batches | put wait s | get wait s | empty s |\n|---|---|---|---|---|\n";
  const char* queue_row =
      csv ? "{},{},{:.2f},{:.2f},{:.2f}\n" : "| {} | {} | {:.2f} | {:.2f} | {:.2f} |\n";
  for (const QueueRow& queue : queues_of(bench)) {
    text +=
        fmt::format(fmt::runtime(queue_row), queue.name, queue.counters.items,
                    queue.counters.put_wait, queue.counters.get_wait, queue.counters.empty_time);
  }
  print(text);
}

void print_json(const DataBench& bench, const std::optional<PeerBench>& peer) {
  nlohmann::ordered_json document;
  document["clips_per_second"] = bench.clips_per_second;
  document["peer_clips_per_second"] = nullptr;
  document["ratio"] = nullptr;
  if (peer) {
    document["peer_clips_per_second"] = peer->clips_per_second;
    document["ratio"] = bench.clips_per_second / peer->clips_per_second;
    document["peer"] = peer->name;
  }
  document["clips"] = bench.clips;
  document["seconds"] = bench.seconds;
  document["times_real_time"] = bench.times_real_time;
  document["first_batch_seconds"] = bench.first_batch_seconds;
  document["padding"] = bench.padding;
  document["bad_clips"] = bench.bad_clips;
  document["device"] = bench.device;
  if (bench.steps) {
    document["steps"] = {{"replay_step", bench.steps->replay_step},
                         {"fed_step", bench.steps->fed_step},
                         {"wait_share", bench.steps->wait_share},
                         {"late", bench.steps->late}};
  }
  for (const StageRate& stage : bench.stages) {
    nlohmann::ordered_json entry{{"clips_per_second", stage.clips_per_second}};
    if (const StageRate* other = peer ? find_stage(peer->stages, stage.name) : nullptr)
      entry["peer_clips_per_second"] = other->clips_per_second;
    document["stages"][stage.name] = entry;
  }
  for (const QueueRow& queue : queues_of(bench)) {
    document["queues"][queue.name] = {{"batches", queue.counters.items},
                                      {"put_wait", queue.counters.put_wait},
                                      {"get_wait", queue.counters.get_wait},
                                      {"empty_time", queue.counters.empty_time}};
  }
  print(document.dump(2));
}

PeerBench run_peer(const Config& config, const std::string& data, double seconds) {
  return bench_peer({.python = reference_python(),
                     .script = peer_script("speech_loader.py"),
                     .data = data,
                     .tokenizer = config.data.tokenizer.value_or(""),
                     .mel = config.data.mel,
                     .workers = config.data.num_workers,
                     .batch_size = config.data.batch_size,
                     .sample_rate = config.data.sample_rate,
                     .seconds = seconds});
}

int bench_data_command(const Arguments& arguments, Config config) {
  const std::string format = arguments.value("--format", "md");
  if (format != "md" && format != "csv" && format != "json") {
    throw Error(ErrorKind::usage, "--format is `" + format + "`; expected md, csv or json");
  }
  const std::string data = arguments.value("--data");
  if (data.empty())
    throw Error(ErrorKind::usage, "`tandem bench data` needs --data DIR")
        .hint("--data assets/demo");
  const auto seconds = parse_double(arguments.value("--seconds", "10"));
  if (!seconds || *seconds <= 0) {
    throw Error(ErrorKind::usage,
                "--seconds is `" + arguments.value("--seconds") + "`; expected a number above 0");
  }
  const auto step = parse_double(arguments.value("--step-ms", "0"));
  if (!step || *step < 0) {
    throw Error(ErrorKind::usage,
                "--step-ms is `" + arguments.value("--step-ms") + "`; expected milliseconds");
  }
  configure_or_stop(device_request(arguments, config));
  announce_loading(config.data);
  const Strategy strategy = setup_gpu_strategy(false);
  const DataBench bench = bench_data({.data = data,
                                      .settings = config.data,
                                      .seed = static_cast<uint64_t>(config.training.seed),
                                      .seconds = *seconds,
                                      .data_device = strategy.data_device,
                                      .model_device = strategy.replicas.front(),
                                      .step_seconds = *step / 1000});
  std::optional<PeerBench> peer;
  if (arguments.has("--peer")) peer = run_peer(config, data, *seconds);
  format == "json" ? print_json(bench, peer) : print_rows(bench, peer, format == "csv");
  return 0;
}

int run_bench(const Arguments& arguments) {
  if (arguments.has("--list")) {
    print(
        "data        decode, resample, mel, tokens: clips a second (--data DIR, --peer)\n"
        "generate    MusicGen: ms a step, clips a second, memory (--size small,large, --peer)\n"
        "synthesize  XTTS speech: times real time, first sound (--size NAME, --peer)\n"
        "train       a step of XTTS's GPT: tokens a second, memory (--size NAME, --ways, "
        "--peer)\n");
    return 0;
  }
  Arguments rest = arguments;
  const std::string what = rest.rest.empty() ? "" : rest.rest.front();
  if (what != "data" && what != "generate" && what != "synthesize" && what != "train") {
    throw Error(ErrorKind::usage, what.empty() ? "`tandem bench` needs the name of a benchmark"
                                               : "there is no benchmark `" + what + "`")
        .hint("tandem bench --list");
  }
  rest.rest.erase(rest.rest.begin());
  Resolved resolved = resolve_settings(rest);
  if (arguments.has("--print-config")) {
    print(print_config(resolved));
    return 0;
  }
  if (what == "data") return bench_data_command(rest, resolved.config);
  if (what == "generate") return bench_generate_command(rest, resolved.config);
  return what == "train" ? bench_train_command(rest, resolved.config)
                         : bench_synthesize_command(rest, resolved.config);
}

}  // namespace

Command bench_command() {
  return {
      .name = "bench",
      .summary = "figures of this machine, side by side with a peer",
      .rest = "data|generate|synthesize|train",
      .details =
          "tandem bench data --data assets/demo --peer\n"
          "tandem bench data --data DIR --peer --format json --num-workers 2\n"
          "tandem bench generate --size small,large --batches 1,8,32,64,128 --whole --peer\n"
          "tandem bench synthesize --size normal --batches 16,64,256 --peer\n"
          "tandem bench train --size normal --batches 16,3 --ways --peer",
      .settings = read_by_bench,
      .chooses_devices = true,
      .options = {{"--list", "", "the benchmarks there are"},
                  {"--data", "DIR", "a dataset or an index"},
                  {"--peer", "", "also run what everybody uses, on the same work"},
                  {"--peer-compile", "", "also the peer under torch.compile (minutes)"},
                  {"--step-ms", "T", "also beside a stand-in for training of T ms a step"},
                  {"--seconds", "S", "how long to measure, once warm (default 10)"},
                  {"--ways", "", "train: also with graph mode and kernel fusion on and off"},
                  {"--size", "NAME",
                   "tiny, small, normal or big (default normal); generate: tiny, small, medium, "
                   "large, stereo-..., several with commas (default small)"},
                  {"--batches", "N,...",
                   "texts at once (synthesize, default 16,64,256), rows (train, default 16,3), "
                   "clips at once (generate, default 1,8,32,64,128)"},
                  {"--steps", "N", "generate: tokens of a clip (default 1500: thirty seconds)"},
                  {"--kv", "K", "generate: keys and values as the products (same) or in int8"},
                  {"--whole", "", "generate: also whole clips, with EnCodec and writing"},
                  {"--codes", "N", "synthesize: codes of a text (default 215: ten seconds)"},
                  {"--precision", "P", "auto (synthesize), fp32, tf32, bf16 or fp16"},
                  {"--format", "F", "md, csv or json (default md)"}},
      .run = run_bench};
}

}  // namespace tandem
