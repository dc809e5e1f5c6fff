#include "observe/diagnose/stage_times.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "util/clock.h"

namespace tandem {
namespace {

constexpr int most_trials = 7;
constexpr double seconds_a_stage = 1.5;

// The middle one of a few trials after a first that is not counted.
template <class Work>
double middle_time(const Work& work) {
  work();
  std::vector<double> times;
  const auto start = Clock::now();
  while (times.size() < most_trials && (times.empty() || seconds_since(start) < seconds_a_stage)) {
    const auto began = Clock::now();
    work();
    times.push_back(seconds_since(began));
  }
  std::ranges::nth_element(times, times.begin() + static_cast<long>(times.size() / 2));
  return times[times.size() / 2];
}

double time_preparation(BatchMaker& maker, const HostBatch& host, LogicalDevice& device,
                        Batch* made) {
  Stream& stream = device.preparation_stream();
  return middle_time([&] {
    stream.run([&] {
      const at::NoGradGuard no_grad;
      const Batch batch = maker.prepare(host);
      if (made) *made = batch;
    });
    stream.synchronize();
  });
}

double time_copy(const Batch& batch, LogicalDevice& to) {
  std::vector<at::Tensor> places;
  {
    DeviceScope scope(to);
    for (const at::Tensor& field : batch.fields)
      places.push_back(at::empty(field.sizes(), field.options().device(to.torch_device())));
  }
  Stream& stream = to.copy_stream();
  return middle_time([&] {
    stream.run([&] {
      const at::NoGradGuard no_grad;
      for (size_t i = 0; i < places.size(); ++i)
        places[i].copy_(batch.fields[i], /*non_blocking=*/true);
    });
    stream.synchronize();
  });
}

// Operations that only look at memory in another way, or that consist of others that are counted.
bool launches_something(std::string_view name) {
  constexpr std::array<std::string_view, 33> nothing{
      "aten::t",         "aten::transpose",  "aten::as_strided",
      "aten::view",      "aten::reshape",    "aten::_unsafe_view",
      "aten::linear",    "aten::matmul",     "aten::expand",
      "aten::expand_as", "aten::slice",      "aten::select",
      "aten::narrow",    "aten::unsqueeze",  "aten::squeeze",
      "aten::permute",   "aten::detach",     "aten::detach_",
      "aten::to",        "aten::_to_copy",   "aten::contiguous",
      "aten::empty",     "aten::empty_like", "aten::empty_strided",
      "aten::alias",     "aten::split",      "aten::chunk",
      "aten::unbind",    "aten::resize_",    "aten::item",
      "aten::zeros",     "aten::ones",       "aten::_reshape_alias"};
  return name.starts_with("aten::") && std::ranges::find(nothing, name) == nothing.end();
}

// Their result is needed on the host before the next operation can be launched.
bool waits_for_device(std::string_view name) {
  constexpr std::array<std::string_view, 6> waiting{"aten::_local_scalar_dense",
                                                    "aten::nonzero",
                                                    "aten::is_nonzero",
                                                    "aten::equal",
                                                    "aten::unique",
                                                    "aten::masked_select"};
  return std::ranges::find(waiting, name) != waiting.end();
}

double smallest_operation(LogicalDevice& device) {
  DeviceScope scope(device);
  const at::NoGradGuard no_grad;
  at::Tensor number = at::zeros({1}, scope.options());
  constexpr int count = 200, rounds = 6;
  double best = 1;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) number.add_(1);
    best = std::min(best, seconds_since(start) / count);
    if (device.kind() == DeviceKind::cuda) device.compute_stream().synchronize();
  }
  return best;
}

}  // namespace

void time_stages(Subject& subject, Figures& figures) {
  BatchMaker& maker = subject.batches();
  LogicalDevice& data = subject.data_device();
  LogicalDevice& model = *subject.models().front();
  const FeedOptions feeding = subject.feeding();
  const bool pinned = feeding.pin_memory && data.kind() == DeviceKind::cuda;
  const std::unique_ptr<HostBatch> host = maker.make_host_batch(pinned);
  maker.plan(*host, feeding.first_batch);
  for (int task = 0; task < host->tasks; ++task) maker.run_task(*host, task);
  Batch made;
  figures.prepare = time_preparation(maker, *host, data, &made);
  for (const at::Tensor& field : made.fields)
    figures.batch_bytes += static_cast<double>(field.nbytes());
  if (&data == &model) return;
  // What a maker keeps on its device stays there: a second GPU cannot be asked. It is taken to be
  // as fast as the first.
  figures.prepare_on_model = model.kind() == DeviceKind::cuda
                                 ? figures.prepare
                                 : time_preparation(maker, *host, model, nullptr);
  const double share = 1 / static_cast<double>(subject.models().size());
  figures.move = share * time_copy(made, model);
}

void count_launches(Subject& subject, const Subject::NextBatch& next, Figures& figures) {
  constexpr int steps = 3;
  LogicalDevice& device = *subject.models().front();
  const bool simulated = device.kind() == DeviceKind::simulated;  // counted there anyway
  DeviceScope scope(device);
  subject.step(0, next);  // a new shape runs as it is first, and is captured the second time
  subject.step(0, next);
  subject.step(0, next);
  device.compute_stream().synchronize();
  if (!simulated) count_operations(true);
  figures.launch_cost = smallest_operation(device);
  const auto before = device.operations().by_name();
  for (int i = 0; i < steps; ++i) subject.step(0, next);
  device.compute_stream().synchronize();
  for (const auto& [name, count] : device.operations().by_name()) {
    const auto found = before.find(name);
    const uint64_t more = count - (found == before.end() ? 0 : found->second);
    if (more == 0) continue;
    if (launches_something(name)) figures.operations += static_cast<double>(more) / steps;
    if (!waits_for_device(name)) continue;
    figures.syncs += static_cast<double>(more) / steps;
    figures.sync_names += (figures.sync_names.empty() ? "" : ", ") + name;
  }
  if (!simulated) count_operations(false);
}

double low_precision_speed(LogicalDevice& device) {
  if (device.kind() != DeviceKind::cuda) return 1;
  DeviceScope scope(device);
  const at::NoGradGuard no_grad;
  const auto time_of = [&](at::ScalarType type) {
    const at::Tensor a = at::ones({4096, 4096}, scope.options().dtype(type));
    at::Tensor out = at::empty_like(a);
    return middle_time([&] {
      for (int i = 0; i < 5; ++i) at::mm_out(out, a, a);
      device.compute_stream().synchronize();
    });
  };
  return time_of(at::kFloat) / time_of(at::kBFloat16);
}

}  // namespace tandem
