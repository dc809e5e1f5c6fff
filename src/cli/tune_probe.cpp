#include "cli/tune_probe.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/generate_plan.h"
#include "cli/session.h"
#include "data/corpus/speech_corpus.h"
#include "device/registry.h"
#include "generate/music_shares.h"
#include "models/musicgen/musicgen.h"
#include "observe/tune_clips.h"
#include "observe/tune_device.h"
#include "tandem/error.h"
#include "tandem/trainer.h"
#include "train/plan.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

struct ProbeLength {
  double seconds = 3;  // of steps that count
  int64_t steps = 8;   // at least
};

std::vector<LogicalDevice*> devices_of(const Strategy& strategy) {
  std::vector<std::string> names = strategy.replicas;
  if (std::ranges::find(names, strategy.data_device) == names.end())
    names.push_back(strategy.data_device);
  std::vector<LogicalDevice*> devices;
  for (const std::string& name : names) devices.push_back(&DeviceRegistry::get().find(name));
  return devices;
}

void add_fill(Json& out, const std::vector<LogicalDevice*>& devices) {
  const DeviceFill fill = fullest_device(devices);
  out["device"] = fill.name;
  out["peak_bytes"] = fill.peak_bytes;
  out["limit_bytes"] = fill.limit_bytes;
}

Json describe_devices(LogicalDevice& model) {
  Json out{{"gpu", model.kind() == DeviceKind::cpu ? "" : model.info().hardware},
           {"kind", model.kind() == DeviceKind::cpu         ? "cpu"
                    : model.kind() == DeviceKind::simulated ? "simulated"
                                                            : "cuda"},
           {"limit_bytes", memory_limit_of(model)},
           {"capability", 0.0}};
  const std::vector<GpuInfo>& gpus = DeviceRegistry::get().probe().gpus;
  const auto index = static_cast<size_t>(std::max(0, model.info().cuda_index));
  if (model.kind() == DeviceKind::cuda && index < gpus.size())
    out["capability"] = parse_double(gpus[index].compute_capability).value_or(0);
  return out;
}

// What a model takes from step to step, and what the stage knows of its activations.
int plan_train(const Config& config) {
  const TrainPlan plan = make_plan(config);
  LogicalDevice& model = DeviceRegistry::get().find(plan.strategy.replicas.front());
  Json out = describe_devices(model);
  const auto replicas = static_cast<double>(plan.strategy.replicas.size());
  double fixed = -static_cast<double>(plan.activation_bytes);
  for (const auto& [name, bytes] : planned_bytes(plan, config.training))
    fixed += static_cast<double>(bytes);
  out["fixed_bytes"] = fixed;
  const double rows = std::ceil(static_cast<double>(plan.batch_size) / replicas);
  out["bytes_a_clip"] = static_cast<double>(plan.activation_bytes) / rows / replicas;
  print(out.dump());
  return 0;
}

// Steps of a run that is left in the middle: nothing is validated, saved or sampled.
class TrainProbe {
 public:
  TrainProbe(const Config& config, ProbeLength length) : config_(config), length_(length) {
    TrainingConfig& training = config_.training;
    training.max_steps = 1'000'000'000;
    training.save_step = training.val_step = 1'000'000'000;
    training.max_minutes.reset();
    training.early_stop_patience = 0;
    training.check_replicas = 0;
    config_.observe.sample_step = 0;
    config_.observe.tensorboard = false;
    const std::string& stage = training.stage;
    // Batches of every shape should be seen, so that the fullest is.
    if (stage != "bytes") length_.steps = std::max(length_.steps, 3 * config_.data.buckets);
  }

  void run() {
    const Strategy strategy = setup_gpu_strategy(config_.training.multi_gpu);
    devices_ = devices_of(strategy);
    // What is queued on a GPU is heard of eight steps later.
    warm_up_ = devices_.front()->kind() == DeviceKind::cuda ? 12 : 3;
    const TrainHooks hooks{.on_start = {},
                           .on_step = [this](const StepReport& report) { take(report); },
                           .on_checkpoint = {},
                           .on_event =
                               [](int64_t, const std::string& kind, const std::string& text) {
                                 if (kind == "memory") throw Error(ErrorKind::memory, text);
                               },
                           .on_plan = [this](const auto& rows) { note_clips(rows); }};
    train(config_, hooks, {.fresh = true});
    throw Error(ErrorKind::internal, "a measurement ended before it had measured anything");
  }

 private:
  void note_clips(const std::vector<std::pair<std::string, std::string>>& rows) {
    for (const auto& [name, value] : rows)
      if (name == "corpus") clips_ = parse_int(value.substr(0, value.find(' '))).value_or(0);
  }

  // Of a stage that does not say; its index is there by now.
  int64_t clips_of_corpus() const {
    if (config_.training.stage == "bytes" || !config_.data.train_data) return 0;
    return SpeechCorpus::open(*config_.data.train_data,
                              {.vocabulary = config_.data.tokenizer.value_or(""),
                               .language = config_.data.language.value_or("")})
        .index()
        .size();
  }

  void take(const StepReport& report) {
    const double speed = report.audio_seconds_per_second > 0 ? report.audio_seconds_per_second
                                                             : report.tokens_per_second;
    // Steps are heard of up to eight later; one in which a graph was captured, or was not yet, says
    // nothing of the others.
    quiet_ = std::exchange(unsettled_, report.unsettled) == report.unsettled ? quiet_ + 1 : 0;
    const bool settled = report.unsettled == 0 || quiet_ > 8;
    if (report.step <= warm_up_ || speed <= 0) return;
    if (start_ == Clock::time_point{}) start_ = Clock::now();
    const bool long_enough = seconds_since(start_) >= length_.seconds;
    const bool far_too_long = seconds_since(start_) >= 8 * length_.seconds;
    if (settled || far_too_long) {
      inverse_.push_back(1 / speed);
      waits_ += report.wait_share / speed;
    }
    const auto steps = static_cast<int64_t>(inverse_.size());
    if ((long_enough && steps >= length_.steps) || (far_too_long && steps >= 2))
      leave(report.audio_seconds_per_second > 0);
  }

  // The run would validate, save and export; nobody wants that, and the kernel cleans up faster.
  [[noreturn]] void leave(bool sound) {
    const auto count = static_cast<double>(inverse_.size());
    double sum = 0, squares = 0;
    for (const double value : inverse_) sum += value;
    for (const double value : inverse_) squares += std::pow(value - sum / count, 2);
    Json out{{"speed", count / sum},
             {"deviation", std::sqrt(squares / count) / (sum / count)},
             {"steps", inverse_.size()},
             {"wait_share", waits_ / sum},
             {"clips", clips_ > 0 ? clips_ : clips_of_corpus()},
             {"unit", sound ? "s of sound/s" : "tokens/s"}};
    add_fill(out, devices_);
    print(out.dump());
    _exit(0);
  }

  Config config_;
  ProbeLength length_;
  std::vector<LogicalDevice*> devices_;
  int64_t warm_up_ = 3, unsettled_ = 0, quiet_ = 0, clips_ = 0;
  Clock::time_point start_{};
  std::vector<double> inverse_;  // of the speed, proportional to a step's seconds
  double waits_ = 0;
};

GenerateRequest request_of(const Arguments& arguments, const Config& config) {
  GenerateRequest request{.config = config, .model_folder = arguments.value("--model")};
  if (!config.data.captions_file)
    request.prompts = {"a calm piano melody with soft strings and a slow steady rhythm"};
  return request;
}

int plan_generate(const GenerateRequest& request) {
  const GeneratePlan plan = make_generate_plan(request);
  Json out = describe_devices(*plan.devices.front());
  const auto bytes = [&](int64_t clips) {
    return static_cast<double>(
        music_memory(plan.model.config, plan.engine, plan.music, clips).total());
  };
  // Sound is made of 32 clips at a time: the line is right from there on.
  const double slope = (bytes(128) - bytes(64)) / 64;
  const auto devices = static_cast<double>(plan.devices.size());
  out["fixed_bytes"] = bytes(64) - 64 * slope;
  out["bytes_a_clip"] = slope / devices;
  // By memory, however few clips there are to make.
  const int64_t fits = clips_that_fit({.model = plan.model.config,
                                       .engine = plan.engine,
                                       .music = plan.music,
                                       .devices = plan.planned_devices},
                                      plan.planned_devices.front().free_memory);
  out["batch"] = request.config.generation.batch_size.value_or(
      fits * static_cast<int64_t>(plan.devices.size()));
  out["clips"] = request.prompts.empty() ? plan.clips : 0;
  print(out.dump());
  return 0;
}

// The batch on all devices at once, each its share, `tokens` behind a prompt of `prompt`; returns
// seconds.
double make_clips(const GeneratePlan& plan, std::vector<std::unique_ptr<MusicEngine>>& engines,
                  int64_t batch, int64_t prompt, int64_t tokens) {
  MusicOptions music = plan.music;
  music.new_tokens = tokens;
  const at::Tensor codes = prompt > 0
                               ? at::zeros({plan.model.config.decoder.codebooks, prompt}, at::kLong)
                               : at::Tensor();
  const std::vector<int64_t> shares = device_batches(batch, engines.size());
  std::vector<std::exception_ptr> failures(engines.size());
  const auto start = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < engines.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          std::vector<MusicRequest> requests(static_cast<size_t>(shares[i]));
          for (size_t row = 0; row < requests.size(); ++row) {
            const auto& captions = plan.captions.rows;
            requests[row].text_ids = plan.ids.of(captions[row % captions.size()].text);
            requests[row].seed = row;
            requests[row].prompt = codes;
          }
          if (requests.empty()) return;
          engines[i]->generate(std::move(requests), music, [](size_t, MusicClip) {});
          engines[i]->finish();
        } catch (...) {
          failures[i] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return seconds_since(start);
}

// What whole clips would take on top of the parts that were made, by the byte model.
void add_rest_of_clips(Json& out, const GeneratePlan& plan, const ClipExcerpt& excerpt,
                       const std::vector<int64_t>& shares) {
  if (excerpt.is_whole()) return;
  const int64_t clips = *std::ranges::max_element(shares);
  const auto bytes = [&](int64_t tokens) {
    MusicOptions music = plan.music;
    music.new_tokens = tokens;
    return static_cast<double>(music_memory(plan.model.config, plan.engine, music, clips).total());
  };
  const double peak = out["peak_bytes"].get<double>() +
                      std::max(0.0, bytes(excerpt.whole) - bytes(excerpt.prompt + excerpt.tokens));
  const double limit = out["limit_bytes"].get<double>();
  if (limit > 0 && peak > limit)
    throw Error(ErrorKind::memory,
                fmt::format("{} clips of {} tokens need {} of {}", clips, excerpt.whole,
                            format_bytes(static_cast<uint64_t>(peak)),
                            format_bytes(static_cast<uint64_t>(limit))));
  out["peak_bytes"] = peak;
}

int probe_generate(const GenerateRequest& request, ProbeLength length) {
  const GeneratePlan plan = make_generate_plan(request);
  const Musicgen model = Musicgen::load(request.model_folder);
  std::vector<std::unique_ptr<MusicEngine>> engines;
  for (LogicalDevice* device : plan.devices)
    engines.push_back(make_music_engine(model, *device, plan.engine));
  // As asked for: the plan would make it fit, and whether it does is the question here.
  const int64_t batch =
      std::max(request.config.generation.batch_size.value_or(plan.plan.batch_size),
               static_cast<int64_t>(engines.size()));
  const ClipExcerpt excerpt = excerpt_of(plan.music.new_tokens, plan.music.window_tokens);
  const ClipTimes times = time_clips(excerpt, length.seconds, [&](int64_t prompt, int64_t tokens) {
    return make_clips(plan, engines, batch, prompt, tokens);
  });
  Json out{{"speed", static_cast<double>(batch) / times.seconds},
           {"deviation", times.deviation},
           {"steps", times.count},
           {"how", describe(excerpt)},
           {"wait_share", 0.0},
           {"clips", request.prompts.empty() ? plan.clips : 0},
           {"unit", "clips/s"}};
  add_fill(out, plan.devices);
  add_rest_of_clips(out, plan, excerpt, device_batches(batch, engines.size()));
  print(out.dump());
  return 0;
}

}  // namespace

int run_tune_probe(const Arguments& arguments, const Resolved& resolved) {
  const std::string what = arguments.value("--probe");
  const ProbeLength length{.seconds =
                               parse_double(arguments.value("--probe-seconds", "3")).value_or(3)};
  const Config& config = resolved.config;
  if (what == "plan-train" || what == "train") {
    configure_or_stop(device_request(arguments, config));
    if (what == "plan-train") return plan_train(config);
    TrainProbe(config, length).run();
  }
  if (what == "plan-generate" || what == "generate") {
    configure_or_stop(generate_device_request(arguments, config));
    const GenerateRequest request = request_of(arguments, config);
    return what == "generate" ? probe_generate(request, length) : plan_generate(request);
  }
  throw Error(ErrorKind::usage,
              "--probe is `" + what + "`; expected train, generate, plan-train or plan-generate");
}

std::vector<Option> tune_probe_options() {
  return {{"--probe", "WHAT", "measure these settings once, print JSON (what tune starts)"},
          {"--probe-seconds", "S", "how long such a measurement lasts (default 3)"}};
}

}  // namespace tandem
