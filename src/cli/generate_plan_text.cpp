// The plan in words and as JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/generate_plan.h"
#include "util/text.h"

namespace tandem {
namespace {

std::string bytes(int64_t count) { return format_bytes(static_cast<uint64_t>(count)); }

std::string model_row(const GenerateRequest& request, const GeneratePlan& plan) {
  const MusicgenConfig& model = plan.model.config;
  return fmt::format("{}: {} layers of {}, {} codebooks, {}, {} Hz, {}", request.model_name,
                     model.decoder.layers, model.decoder.width, model.decoder.codebooks,
                     model.decoder.channels == 2 ? "stereo" : "mono", model.codec.rate,
                     plan.engine.precision);
}

std::string captions_row(const GenerateRequest& request, const GeneratePlan& plan) {
  std::string text =
      fmt::format("{}, the longest of {} ids", plan.captions.rows.size(), plan.ids.longest());
  if (request.prompts.empty()) text += ", of " + *request.config.data.captions_file;
  if (request.shards > 1)
    text += fmt::format("; shard {} of {} makes {}", request.shard, request.shards, plan.clips);
  return text;
}

std::string devices_row(const GeneratePlan& plan) {
  std::vector<std::string> names;
  for (const MusicPlanDevice& device : plan.planned_devices) {
    std::string name = device.name;
    if (!device.hardware.empty()) name += " " + device.hardware;
    if (device.free_memory > 0) name += fmt::format(" ({} free)", bytes(device.free_memory));
    names.push_back(name);
  }
  return join(names, ", ");
}

std::string batch_row(const GenerateRequest& request, const GeneratePlan& plan) {
  std::vector<std::string> shares;
  for (const int64_t share : plan.plan.shares) shares.push_back(std::to_string(share));
  return fmt::format("{} at once, a device {}{}", plan.plan.batch_size, join(shares, ", "),
                     request.config.generation.batch_size ? "" : "; chosen from free memory");
}

std::string memory_row(const MusicPlan& plan) {
  const MusicMemory& memory = plan.memory;
  std::string text = fmt::format("{} a device: weights {}, cache {}, work {}, sound {}",
                                 bytes(memory.total()), bytes(memory.weights), bytes(memory.cache),
                                 bytes(memory.work), bytes(memory.sound));
  if (plan.free_memory > 0)
    text += fmt::format("; leaves {:.0f} % of {} free", 100 * plan.free_share(),
                        bytes(plan.free_memory));
  return text;
}

double hours_of_sound(const GeneratePlan& plan) {
  return static_cast<double>(plan.clips) * plan.plan.clip_seconds / 3600;
}

std::string expected_row(const GeneratePlan& plan) {
  const MusicPlan& expected = plan.plan;
  const double sound = static_cast<double>(plan.clips) * expected.clip_seconds;
  const double devices = static_cast<double>(plan.devices.size());
  return fmt::format(
      "{:.3g} ms a step, {} a batch, {:.0f} s ({:.2f} hours) in all, {:.3g} GPU seconds a clip, "
      "{:.3g}x real time; {}",
      1000 * expected.step_seconds, format_seconds(expected.batch_seconds), expected.seconds,
      expected.seconds / 3600,
      plan.clips > 0 ? devices * expected.seconds / static_cast<double>(plan.clips) : 0,
      expected.seconds > 0 ? sound / expected.seconds : 0,
      expected.speed_known ? "by the data sheet of the GPU" : "a guess: hardware not in our table");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> plan_rows(const GenerateRequest& request,
                                                           const GeneratePlan& plan) {
  const std::string windows =
      plan.plan.windows > 1 ? fmt::format(" in {} windows", plan.plan.windows) : "";
  return {{"Model", model_row(request, plan)},
          {"Captions", captions_row(request, plan)},
          {"Clips", fmt::format("{} of {} tokens{}, {:.2f} s each: {:.2f} hours of sound",
                                plan.clips, plan.music.new_tokens, windows, plan.plan.clip_seconds,
                                hours_of_sound(plan))},
          {"Devices", devices_row(plan)},
          {"Batch", batch_row(request, plan)},
          {"Memory", memory_row(plan.plan)},
          {"Steps", fmt::format("{} a batch, {} {} a device", plan.plan.steps, plan.plan.batches,
                                plan.plan.batches == 1 ? "batch" : "batches")},
          {"Expected", expected_row(plan)}};
}

std::string plan_text(const GenerateRequest& request, const GeneratePlan& plan) {
  std::string text;
  for (const auto& [name, value] : plan_rows(request, plan))
    text += fmt::format("{}{:<9} {}", text.empty() ? "" : "\n", name, value);
  for (const std::string& note : plan.plan.notes) text += fmt::format("\n{:<9} {}", "Note", note);
  return text;
}

std::string plan_json(const GenerateRequest& request, const GeneratePlan& plan) {
  const MusicPlan& expected = plan.plan;
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  for (size_t i = 0; i < plan.planned_devices.size(); ++i) {
    const MusicPlanDevice& device = plan.planned_devices[i];
    devices.push_back({{"name", device.name},
                       {"hardware", device.hardware},
                       {"free_memory", device.free_memory},
                       {"batch_size", expected.shares[i]}});
  }
  const nlohmann::ordered_json document = {{"model", request.model_name},
                                           {"precision", plan.engine.precision},
                                           {"clips", plan.clips},
                                           {"new_tokens", plan.music.new_tokens},
                                           {"clip_seconds", expected.clip_seconds},
                                           {"sound_hours", hours_of_sound(plan)},
                                           {"longest_text", plan.ids.longest()},
                                           {"devices", devices},
                                           {"batch_size", expected.batch_size},
                                           {"memory",
                                            {{"weights", expected.memory.weights},
                                             {"cache", expected.memory.cache},
                                             {"work", expected.memory.work},
                                             {"sound", expected.memory.sound},
                                             {"total", expected.memory.total()},
                                             {"free_share", expected.free_share()}}},
                                           {"windows", expected.windows},
                                           {"steps", expected.steps},
                                           {"batches", expected.batches},
                                           {"expected",
                                            {{"step_seconds", expected.step_seconds},
                                             {"batch_seconds", expected.batch_seconds},
                                             {"seconds", expected.seconds},
                                             {"hours", expected.seconds / 3600},
                                             {"speed_known", expected.speed_known}}},
                                           {"notes", expected.notes}};
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tandem
