#include "observe/profile_generate.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "device/torch_errors.h"
#include "observe/dropped_clips.h"
#include "observe/profile_sections.h"
#include "tandem/error.h"
#include "util/log.h"

namespace tandem {
namespace {

constexpr const char* rest_of_memory = "buffers and the rest";
constexpr int64_t following_batches = 3;  // one at least has its sound made beside another

class MusicProfile {
 public:
  MusicProfile(const MusicProfileTask& task, const ProfileOptions& options)
      : task_(task), options_(options), clips_(task.format) {
    for (size_t i = 0; i < task.devices.size(); ++i) {
      if (task.shares[i] <= 0) continue;  // fewer clips than devices
      profile_.replicas.push_back({.device = task.devices[i], .rows = task.shares[i]});
      profile_.rows += task.shares[i];
    }
    profile_.stage = "generate";
    profile_.precision = task.engine.precision;
    profile_.music =
        MusicFigures{.tokens = task.music.new_tokens,
                     .traced_tokens = std::min(task.music.new_tokens, most_traced_tokens)};
    traced_music_ = task.music;
    traced_music_.new_tokens = profile_.music->traced_tokens;
    engines_.resize(profile_.replicas.size());
  }

  Profile run() {
    make_engines(task_.engine);
    log_info("warming up: one batch of {} clips", profile_.rows);
    batches(1, task_.music, nullptr);
    log_info("timing the parts of {} batches", options_.steps);
    time_batches();
    trace();
    for (size_t rank = 0; rank < engines_.size(); ++rank) {
      profile_.replicas[rank].memory = memory_of(rank);
      note_memory(profile_, rank, rest_of_memory);
    }
    follow();
    if (options_.cost_rounds > 0) log_info("measuring what the profiling costs");
    profile_.cost = measure_cost(options_.cost_rounds, any_cuda(profile_.replicas), origin_,
                                 [this](bool recorded) { return again(recorded); });
    if (options_.limits) find_limits();
    return std::move(profile_);
  }

 private:
  int64_t traced_steps() const { return std::min(options_.traced_steps, options_.steps); }

  // Not on the devices' threads, whose names the engines' own would inherit.
  void make_engines(const MusicEngineOptions& options) {
    weights_.assign(engines_.size(), 0);
    for (size_t rank = 0; rank < engines_.size(); ++rank) {
      LogicalDevice& device = *profile_.replicas[rank].device;
      const uint64_t before = device.memory().used();
      engines_[rank] = make_music_engine(task_.model, device, options);
      weights_[rank] = device.memory().used() - std::min(before, device.memory().used());
    }
  }

  std::vector<std::pair<std::string, uint64_t>> memory_of(size_t rank) const {
    auto parts = engines_[rank]->bytes_by_part();
    if (parts.empty() && weights_[rank] > 0) parts.emplace_back("weights", weights_[rank]);
    std::erase_if(parts, [](const auto& part) { return part.second == 0; });
    return parts;
  }

  // One batch of a device, handed over and written when it returns unless others `follow`.
  void batch(size_t rank, int64_t number, const MusicOptions& music, bool follows = false) {
    std::vector<MusicRequest> requests(static_cast<size_t>(profile_.replicas[rank].rows));
    int64_t first = number * profile_.rows;
    for (size_t i = 0; i < rank; ++i) first += profile_.replicas[i].rows;
    for (size_t i = 0; i < requests.size(); ++i)
      requests[i] = task_.request(first + static_cast<int64_t>(i));
    engines_[rank]->generate(
        std::move(requests), music,
        [this, rank](size_t index, const MusicClip& clip) { clips_.write(rank, index, clip); });
    if (!follows) engines_[rank]->finish();
  }

  // Batches one at a time. `into`: where they are recorded, or nowhere.
  void batches(int64_t count, const MusicOptions& music,
               std::vector<RecordedStep> ProfiledReplica::*into, bool recorded = false) {
    const int64_t first = next_;
    next_ += count;
    on_every_rank(profile_.replicas, [&](size_t rank) {
      ProfiledReplica& found = profile_.replicas[rank];
      std::optional<MusicRecorder> recorder;
      if (into || recorded) recorder.emplace(*found.device, origin_, count, found.rows);
      engines_[rank]->observe(recorder ? &*recorder : nullptr);
      const auto start = Clock::now();
      for (int64_t number = first; number < first + count; ++number) {
        if (recorder) recorder->begin_step(number);
        batch(rank, number, music);
        if (recorder) recorder->end_step();
      }
      if (into == &ProfiledReplica::timed) found.wall = seconds_since(start);
      engines_[rank]->observe(nullptr);
      if (into) found.*into = recorder->take();
    });
  }

  void time_batches() {
    const MusicCounters before = engines_[0]->counters();
    for (size_t rank = 0; rank < engines_.size(); ++rank)
      profile_.replicas[rank].captures = static_cast<int64_t>(engines_[rank]->counters().captures);
    batches(options_.steps, task_.music, &ProfiledReplica::timed);
    for (size_t rank = 0; rank < engines_.size(); ++rank) {
      ProfiledReplica& found = profile_.replicas[rank];
      found.captures = static_cast<int64_t>(engines_[rank]->counters().captures) - found.captures;
    }
    profile_.music->decoding_steps =
        static_cast<int64_t>(engines_[0]->counters().steps - before.steps) / options_.steps;
  }

  void trace() {
    if (traced_steps() == 0) return;
    log_info("tracing the operations of {} batches of {} tokens", traced_steps(),
             traced_music_.new_tokens);
    DoubleTrace both(any_cuda(profile_.replicas), /*linked=*/false, origin_);
    batches(traced_steps(), traced_music_, &ProfiledReplica::traced);
    both.stop(profile_.operations, profile_.kernels);
  }

  void follow() {
    const int64_t first = next_;
    next_ += following_batches;
    std::vector<double> seconds(engines_.size());
    on_every_rank(profile_.replicas, [&](size_t rank) {
      const auto start = Clock::now();
      for (int64_t number = first; number < first + following_batches; ++number)
        batch(rank, number, task_.music, /*follows=*/true);
      engines_[rank]->finish();
      seconds[rank] = seconds_since(start);
    });
    profile_.music->following = following_batches;
    profile_.music->following_seconds = *std::ranges::max_element(seconds);
  }

  // Seconds a batch.
  double again(bool recorded) {
    const bool cuda = any_cuda(profile_.replicas);
    next_ = 0;  // the same clips every time
    const double start = seconds_of_work(cuda, /*whole_program=*/true);
    batches(1, traced_music_, nullptr, recorded);
    return seconds_of_work(cuda, /*whole_program=*/true) - start;
  }

  void find_limits() {
    const std::string precision =
        task_.engine.precision == "auto" ? "fp16" : task_.engine.precision;
    const bool linked = any_cuda(profile_.replicas) && profile_.kernels.failure.empty() &&
                        !profile_.kernels.kernels.empty();
    if (linked) find_rates();
    engines_.clear();  // large products need their memory
    for (ProfiledReplica& found : profile_.replicas)
      found.limits = measure_limits(*found.device, precision);
  }

  // The same batch captured, then kernel by kernel.
  void find_rates() {
    log_info("asking how much work the kernels are");
    try {
      OperationRecord unused;
      KernelRecord captured;
      next_ = 0;
      DoubleTrace short_trace(/*cuda=*/true, /*linked=*/false, origin_);
      batches(1, traced_music_, nullptr);
      short_trace.stop(unused, captured);
      for (auto& engine : engines_) engine.reset();
      MusicEngineOptions kernel_by_kernel = task_.engine;
      kernel_by_kernel.capture = false;
      make_engines(kernel_by_kernel);
      next_ = 0;
      batches(1, traced_music_, nullptr);  // kernels are loaded
      next_ = 0;
      OperationRecord operations;
      KernelRecord kernels;
      DoubleTrace linked_trace(/*cuda=*/true, /*linked=*/true, origin_);
      batches(1, traced_music_, nullptr);
      linked_trace.stop(operations, kernels);
      profile_.work_failure = kernels.failure.empty() ? captured.failure : kernels.failure;
      for (ProfiledReplica& found : profile_.replicas)
        found.rates = kernel_rates({.operations = operations, .kernels = kernels}, captured, 1,
                                   found.device->info().cuda_index);
    } catch (const std::exception& error) {
      profile_.work_failure = explain_with_torch(error).sentence;
    }
  }

  const MusicProfileTask& task_;
  const ProfileOptions& options_;
  const Clock::time_point origin_ = Clock::now();
  DroppedClips clips_;
  MusicOptions traced_music_;
  std::vector<uint64_t> weights_;  // bytes that making an engine took
  int64_t next_ = 0;               // batch
  Profile profile_;
  std::vector<std::unique_ptr<MusicEngine>> engines_;  // wait for their sound first
};

}  // namespace

Profile profile_generation(const MusicProfileTask& task, const ProfileOptions& options) {
  if (options.steps < 1)
    throw Error(
        ErrorKind::usage,
        fmt::format("a profile of {} batches was asked for; expected at least 1", options.steps));
  const at::NoGradGuard no_gradients;
  try {
    return MusicProfile(task, options).run();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory) throw;
    throw Error(ErrorKind::memory, error.what()).hint("fewer clips at once: --batch-size N");
  }
}

}  // namespace tandem
