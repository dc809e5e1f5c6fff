#include "cli/generate_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "device/registry.h"
#include "generate/music_windows.h"
#include "models/musicgen/musicgen.h"
#include "tandem/error.h"
#include "util/host_memory.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

int64_t free_memory(LogicalDevice& device) {
  const auto limit = static_cast<int64_t>(device.info().memory_limit);
  if (device.kind() == DeviceKind::cpu) return static_cast<int64_t>(available_host_memory());
  if (device.kind() == DeviceKind::simulated)
    return limit - static_cast<int64_t>(device.memory().used());
  const std::vector<GpuInfo>& gpus = DeviceRegistry::get().probe().gpus;
  const auto index = static_cast<size_t>(device.info().cuda_index);
  if (index >= gpus.size()) return limit;
  const int64_t free = static_cast<int64_t>(gpus[index].memory_total) -
                       static_cast<int64_t>(gpus[index].memory_used);
  return limit > 0 ? std::min(limit, free) : free;
}

std::vector<LogicalDevice*> all_devices() {
  std::vector<LogicalDevice*> devices;
  for (const auto& gpu : DeviceRegistry::get().gpus()) devices.push_back(gpu.get());
  if (devices.empty()) devices.push_back(&DeviceRegistry::get().cpu());
  return devices;
}

std::vector<MusicPlanDevice> planned(const std::vector<LogicalDevice*>& devices) {
  std::vector<MusicPlanDevice> out;
  for (LogicalDevice* device : devices) {
    const auto shares = std::ranges::count_if(devices, [&](const LogicalDevice* other) {
      return other->info().cuda_index == device->info().cuda_index;
    });
    out.push_back({.name = device->name(),
                   .hardware = device->info().hardware,
                   .free_memory = free_memory(*device),
                   .gpu = device->kind() == DeviceKind::cuda,
                   .sharing = shares});
  }
  return out;
}

bool has_half_products(const LogicalDevice& device) {
  if (device.kind() != DeviceKind::cuda) return false;
  const std::vector<GpuInfo>& gpus = DeviceRegistry::get().probe().gpus;
  const auto index = static_cast<size_t>(device.info().cuda_index);
  const auto capability =
      index < gpus.size() ? parse_double(gpus[index].compute_capability) : std::nullopt;
  return !capability || *capability >= 8;  // not known: the engine will say
}

// Every device computes alike, so that no clip depends on which one made it.
std::string precision_for(const std::string& asked, const std::vector<LogicalDevice*>& devices) {
  const bool half = std::ranges::all_of(
      devices, [](const LogicalDevice* device) { return has_half_products(*device); });
  if (asked == "auto") return half ? "fp16" : "fp32";
  if (asked == "fp32" || half) return asked;
  throw Error(ErrorKind::config,
              fmt::format("model.dtype asks for {}, which needs GPUs of compute capability 8.0 or "
                          "more everywhere",
                          asked))
      .hint("leave it at auto");
}

MusicSampling sampling_of(const GenerationConfig& settings) {
  return {.greedy = !settings.do_sample || settings.temperature == 0,
          .temperature = settings.temperature > 0 ? settings.temperature : 1,
          .top_p = settings.top_p > 0 ? settings.top_p : 1,  // 0: audiocraft's way to say none
          .guidance_scale = settings.guidance_scale,
          .top_k = settings.top_k};
}

// What was set must be possible; what was not set is made so.
void fit_windows(const GenerationConfig& settings, const MusicDecoderSize& size,
                 MusicOptions& music) {
  const int64_t longest = size.positions - 1;  // one is the start's
  const GenerationConfig standard;
  if (music.window_tokens > longest) {
    if (settings.window_tokens != standard.window_tokens) {
      throw Error(ErrorKind::config,
                  fmt::format("`generation.window_tokens` is {}, but the model has {} positions, "
                              "one of them for the start",
                              settings.window_tokens, size.positions))
          .hint(fmt::format("{} at most; longer clips are made of several windows", longest));
    }
    music.window_tokens = longest;
  }
  if (settings.kept_tokens == standard.kept_tokens)
    music.kept_tokens = std::min(music.kept_tokens, music.window_tokens * 2 / 5);
  music_windows(size, music, /*prompt_frames=*/0);  // says what is wrong
}

}  // namespace

MusicOptions music_options(const GenerateRequest& request, const MusicgenConfig& model) {
  const GenerationConfig& settings = request.config.generation;
  MusicOptions music{.sampling = sampling_of(settings),
                     .new_tokens = settings.max_new_tokens,
                     .window_tokens = settings.window_tokens,
                     .kept_tokens = settings.kept_tokens};
  if (request.seconds) {
    const auto frames = std::llround(*request.seconds * model.codec.frame_rate());
    music.new_tokens = tokens_of_frames(model.decoder, std::max<int64_t>(1, frames));
  }
  fit_windows(settings, model.decoder, music);
  return music;
}

CaptionIds::CaptionIds(const Captions& captions, const MusicgenFolder& model, int64_t longest,
                       int64_t threads) {
  Musicgen reader;  // of text only: without weights
  reader.tokenizer = load_tokenizer(model.tokenizer_file.string());
  std::vector<std::vector<int64_t>> made(captions.rows.size());
  std::atomic<size_t> next{0};
  {
    std::vector<std::jthread> workers;
    const auto wanted = std::clamp<int64_t>(threads, 1, std::thread::hardware_concurrency());
    for (int64_t i = 0; i < wanted; ++i) {
      workers.emplace_back([&] {
        for (size_t row; (row = next++) < made.size();)
          made[row] = reader.text_ids(captions.rows[row].text, longest);
      });
    }
  }
  for (size_t row = 0; row < made.size(); ++row) {
    longest_ = std::max(longest_, static_cast<int64_t>(made[row].size()));
    ids_.try_emplace(captions.rows[row].text, std::move(made[row]));
  }
}

GeneratePlan make_generate_plan(const GenerateRequest& request) {
  GeneratePlan plan;
  plan.model = MusicgenFolder::open(request.model_folder);
  plan.captions = captions_of(request);
  const DataConfig& data = request.config.data;
  plan.ids = CaptionIds(plan.captions, plan.model, data.max_sequence_length, data.num_workers);
  plan.music = music_options(request, plan.model.config);
  plan.music.longest_text = plan.ids.longest();
  plan.devices = all_devices();
  plan.planned_devices = planned(plan.devices);
  plan.engine = music_engine_options(request.config);
  plan.engine.precision = precision_for(plan.engine.precision, plan.devices);
  const auto rows = static_cast<int64_t>(plan.captions.rows.size());
  plan.clips = (rows - request.shard + request.shards - 1) / request.shards;
  plan.plan = plan_music({.model = plan.model.config,
                          .engine = plan.engine,
                          .music = plan.music,
                          .clips = plan.clips,
                          .batch_size = request.config.generation.batch_size,
                          .devices = plan.planned_devices});
  return plan;
}

void announce(const GeneratePlan& plan) {
  const bool cpu = plan.devices.front()->kind() == DeviceKind::cpu;
  const size_t gpus = cpu ? 0 : plan.devices.size();
  say(fmt::format("Available GPUs: {}", gpus));
  if (gpus < 2) {
    say(fmt::format("Less than 2 GPUs available. {}",
                    cpu ? "Generating on the CPU, which is slow."
                        : fmt::format("Generating on one, {} at a time.", plan.plan.batch_size)));
  }
  if (!cpu) {
    std::vector<std::string> indices;
    for (const LogicalDevice* device : plan.devices)
      indices.push_back(std::to_string(device->original_index()));
    say(fmt::format("Using GPUs: [{}]", join(indices, ", ")));
  }
  say(fmt::format("Total batch size: {}", plan.plan.batch_size));
  if (!cpu) say(fmt::format("Per-GPU batch size: {}", plan.plan.shares.front()));
  if (plan.plan.shares.back() != plan.plan.shares.front())
    log_info("the last GPU takes the remainder too: {}", plan.plan.shares.back());
  for (const std::string& note : plan.plan.notes) log_warning("{}", note);
}

}  // namespace tandem
