#include "observe/train_bench.h"

#include <ATen/ATen.h>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "models/xtts/xtts.h"
#include "tandem/config.h"
#include "tandem/error.h"
#include "train/batches/gpt_batches.h"
#include "train/replica.h"
#include "train/stages/gpt_learner.h"
#include "train/stages/low_precision.h"
#include "util/clock.h"

#ifdef TANDEM_WITH_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif

namespace tandem {
namespace {

constexpr int64_t slice_frames = 517;  // six seconds

// Text and codes that fill the places a row has.
struct RowShape {
  int64_t latents, text, codes;
  explicit RowShape(const TrainBenchOptions& options) : latents(32) {
    const int64_t rest = options.places - latents - 2 - stop_targets - 1;
    text = rest / 3;
    codes = rest - text;
  }
};

Batch make_batch(const XttsConfig& model, const TrainBenchOptions& options) {
  const RowShape shape(options);
  const at::TensorOptions whole =
      at::TensorOptions(DeviceScope::current()->torch_device()).dtype(at::kLong);
  const auto ids = [&](int64_t count, int64_t below) {
    return (at::arange(options.rows * count, whole) * 7919 % below).view({options.rows, count});
  };
  Batch batch;
  batch.fields.resize(gpt_fields);
  batch.fields[gpt_text] = ids(shape.text, model.gpt.text_tokens);
  batch.fields[gpt_text_lengths] = at::full({options.rows}, shape.text, whole);
  batch.fields[gpt_codes] = ids(shape.codes, model.gpt.start_audio_token);
  batch.fields[gpt_code_lengths] = at::full({options.rows}, shape.codes, whole);
  batch.fields[gpt_conditioning] =
      at::sin(at::arange(options.rows * model.mel_channels * slice_frames, whole.dtype(at::kFloat)))
          .view({options.rows, model.mel_channels, slice_frames});
  batch.fields[gpt_conditioning_lengths] = at::full({options.rows}, slice_frames, whole);
  batch.fields[gpt_slice] = at::zeros({options.rows, 2}, whole);
  batch.fields[gpt_whole] = at::full(
      {options.rows, 2}, static_cast<double>(options.rows * shape.codes), whole.dtype(at::kFloat));
  batch.rows = batch.whole_rows = options.rows;
  batch.sizes.assign(static_cast<size_t>(options.rows), options.places - shape.latents);
  return batch;
}

double peak_memory(LogicalDevice& device) {
#ifdef TANDEM_WITH_CUDA
  if (device.kind() == DeviceKind::cuda) {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(
        static_cast<c10::DeviceIndex>(device.info().cuda_index));
    return static_cast<double>(stats.reserved_bytes[0].peak);
  }
#endif
  return static_cast<double>(device.memory().peak());
}

void reset_memory(LogicalDevice& device) {
#ifdef TANDEM_WITH_CUDA
  if (device.kind() != DeviceKind::cuda) return;
  c10::cuda::CUDACachingAllocator::emptyCache();
  c10::cuda::CUDACachingAllocator::resetPeakStats(
      static_cast<c10::DeviceIndex>(device.info().cuda_index));
#else
  (void)device;
#endif
}

}  // namespace

double training_flops(const TrainBenchOptions& options) {
  const XttsGptSize gpt = xtts_preset(options.model_size).gpt;
  const auto places = static_cast<double>(options.places), width = static_cast<double>(gpt.width);
  const double products = 12 * width * width, attention = places * width;  // causal: half of 2
  return 6 * (products + attention) * static_cast<double>(gpt.layers) * places *
         static_cast<double>(options.rows);
}

TrainBench bench_training(LogicalDevice& device, const TrainBenchOptions& options) {
  DeviceScope scope(device);
  reset_memory(device);
  set_precision(options.precision, false);
  TrainingConfig config;
  config.precision = options.precision;
  config.enable_graph_mode = options.graph;
  config.enable_kernel_fusion = options.fusion;
  config.recompute = options.recompute;
  config.fp8_products = options.fp8;
  config.dropout = options.dropout;
  const XttsConfig model = xtts_preset(options.model_size);
  if (options.places > 32 + model.gpt.max_text_tokens + model.gpt.max_audio_tokens + 5) {
    throw Error(ErrorKind::usage, "--places is more than a model of this size has");
  }
  const RowShape shape(options);
  // Apart from the replica, so that the tensors the model is made in end where it takes them over.
  auto learner = std::make_unique<GptLearner>(XttsGpt::make(model.gpt, 1),
                                              Conditioning::make(model, 1), config, device,
                                              GptLargest{options.rows, shape.text, shape.codes});
  if (!options.conditioning) {
    const at::TensorOptions floats(device.torch_device());
    learner->give_latents(at::sin(at::arange(options.rows * shape.latents * model.gpt.width,
                                             floats.dtype(at::kFloat)))
                              .view({options.rows, shape.latents, model.gpt.width}));
  }
  Replica replica(device, std::move(learner), config, nullptr);
  const Batch batch = make_batch(model, options);
  int64_t step = 0;
  const auto run = [&](int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      replica.step(
          {.step = ++step, .learning_rate = 1e-5, .batch = [&](int64_t) { return &batch; }});
    }
    device.compute_stream().synchronize();
  };
  run(4);
  const auto start = Clock::now();
  run(options.steps);
  TrainBench bench;
  bench.step_seconds = seconds_since(start) / static_cast<double>(options.steps);
  bench.tokens_per_second = static_cast<double>(options.rows * options.places) / bench.step_seconds;
  bench.peak_bytes = peak_memory(device);
  bench.flops_per_second = training_flops(options) / bench.step_seconds;
  bench.captures = replica.captures();
  return bench;
}

}  // namespace tandem
