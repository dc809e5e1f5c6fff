#include "generate/music_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "generate/music_cost.h"
#include "generate/music_shares.h"
#include "generate/music_windows.h"
#include "models/musicgen/delay_pattern.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr double used_share = 0.875;       // of free memory: 10 to 15 % stay free
constexpr int64_t most_clips = 1'000'000;  // as many as `generation.batch_size` may be

int64_t bytes_of(const MusicPlanRequest& request, int64_t clips) {
  return music_memory(request.model, request.engine, request.music, clips).total();
}

// The largest number whose bytes are at most `bytes`; they grow with the number.
int64_t largest_within(const MusicPlanRequest& request, double bytes) {
  const auto fits = [&](int64_t clips) {
    return static_cast<double>(bytes_of(request, clips)) <= bytes;
  };
  if (!fits(1)) return 0;
  int64_t low = 1, high = 2;
  while (high < most_clips && fits(high)) low = std::exchange(high, 2 * high);
  high = std::min(high, most_clips);
  while (high - low > 1) {
    const int64_t middle = std::midpoint(low, high);
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

int64_t least_memory(const std::vector<MusicPlanDevice>& devices) {
  int64_t least = 0;
  for (const MusicPlanDevice& device : devices)
    if (device.free_memory > 0 && (least == 0 || device.free_memory < least))
      least = device.free_memory;
  return least;
}

[[noreturn]] void refuse_one_clip(const MusicPlanRequest& request, int64_t memory) {
  throw Error(
      ErrorKind::memory,
      fmt::format("one clip of {} tokens takes {}, and {} are free", request.music.new_tokens,
                  format_bytes(static_cast<uint64_t>(bytes_of(request, 1))),
                  format_bytes(static_cast<uint64_t>(memory))))
      .hint(
          "a shorter clip (--seconds), a smaller window (generation.window_tokens), a smaller "
          "model, or generation.kv_cache=int8");
}

int64_t chosen_batch(const MusicPlanRequest& request, int64_t memory) {
  const auto devices = static_cast<int64_t>(request.devices.size());
  const int64_t each = std::max<int64_t>(1, (request.clips + devices - 1) / devices);
  constexpr int64_t without_memory_figure = 8;
  const int64_t fitting = memory > 0 ? clips_that_fit(request, memory) : without_memory_figure;
  if (fitting < 1) refuse_one_clip(request, memory);
  return devices * std::min(each, fitting);
}

// What the user asked for, unless it cannot be.
int64_t asked_batch(const MusicPlanRequest& request, int64_t memory, MusicPlan& plan) {
  const auto devices = static_cast<int64_t>(request.devices.size());
  int64_t batch = *request.batch_size;
  if (batch < devices) {
    plan.notes.push_back(
        fmt::format("a batch of {} would leave devices idle: it becomes {}, one clip for each",
                    batch, devices));
    batch = devices;
  }
  if (memory == 0) return batch;
  const int64_t fitting = largest_within(request, static_cast<double>(memory));
  if (fitting < 1) refuse_one_clip(request, memory);
  const int64_t largest = device_batches(batch, request.devices.size()).back();
  if (largest <= fitting) return batch;
  plan.notes.push_back(
      fmt::format("a batch of {} takes {} on one device, and {} are free: it becomes {}", batch,
                  format_bytes(static_cast<uint64_t>(bytes_of(request, largest))),
                  format_bytes(static_cast<uint64_t>(memory)), fitting * devices));
  return fitting * devices;
}

}  // namespace

double MusicPlan::free_share() const {
  if (free_memory == 0) return 0;
  return 1 - static_cast<double>(memory.total()) / static_cast<double>(free_memory);
}

int64_t clips_that_fit(const MusicPlanRequest& request, int64_t free_memory) {
  return largest_within(request, used_share * static_cast<double>(free_memory));
}

int64_t frames_of_tokens(const MusicDecoderSize& size, int64_t tokens) {
  return DelayPattern{.codebooks = size.codebooks, .channels = size.channels, .columns = 1 + tokens}
      .frames();
}

// Too few columns have no delay, and then every token is a frame.
int64_t tokens_of_frames(const MusicDecoderSize& size, int64_t frames) {
  const int64_t tokens = frames + size.codebooks_a_channel() - 1;
  return frames_of_tokens(size, tokens) == frames ? tokens : frames;
}

MusicPlan plan_music(const MusicPlanRequest& request) {
  MusicPlan plan;
  plan.free_memory = least_memory(request.devices);
  plan.batch_size = request.batch_size ? asked_batch(request, plan.free_memory, plan)
                                       : chosen_batch(request, plan.free_memory);
  plan.shares = device_batches(plan.batch_size, request.devices.size());
  const int64_t largest = plan.shares.back();
  plan.memory = music_memory(request.model, request.engine, request.music, largest);

  const std::vector<MusicWindow> windows =
      music_windows(request.model.decoder, request.music, /*prompt_frames=*/0);
  plan.windows = static_cast<int64_t>(windows.size());
  plan.steps = windows.back().first_step + windows.back().new_tokens;
  const int64_t frames = frames_of_tokens(request.model.decoder, request.music.new_tokens);
  plan.clip_seconds = static_cast<double>(frames) / request.model.codec.frame_rate();

  const auto devices = static_cast<int64_t>(request.devices.size());
  const int64_t each = (request.clips + devices - 1) / devices;
  plan.batches = (each + largest - 1) / largest;
  const MusicDeviceSpeed speed = music_device_speed(request.devices.front());
  plan.speed_known = speed.known;
  plan.batch_seconds = music_batch_seconds(
      {request.model, request.engine, request.music, speed, std::min(each, largest)});
  plan.step_seconds = plan.batch_seconds / static_cast<double>(std::max<int64_t>(1, plan.steps));
  const int64_t last = each - (plan.batches - 1) * largest;
  plan.seconds = static_cast<double>(std::max<int64_t>(0, plan.batches - 1)) * plan.batch_seconds;
  if (last > 0) {
    plan.seconds +=
        music_batch_seconds({request.model, request.engine, request.music, speed, last});
  }
  return plan;
}

}  // namespace tandem
