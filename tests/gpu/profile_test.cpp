// Profiles on a GPU: kernels linked to their work, parts that add up. Needs a GPU.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "gpu/in_child.h"
#include "gpu/lively_music.h"
#include "models/musicgen/musicgen.h"
#include "nn/gpt_step/gpt_attention.h"
#include "observe/profile_generate.h"
#include "observe/profile_sections.h"
#include "observe/profile_summary.h"
#include "observe/profile_training.h"
#include "tandem/config.h"
#include "util/atomic_file.h"

namespace tandem {
namespace {

// Share of the time of kernels of which a share of the limit is told. Says why of those that matter
// nothing is.
double told_share(const Profile& profile) {
  double all = 0, told = 0;
  const KernelRates& rates = profile.replicas.front().rates;
  const std::vector<WorkRow> rows = kernel_rows(profile, 0);
  for (const WorkRow& row : rows) all += row.seconds;
  for (const WorkRow& row : rows) {
    if (row.limit > 0) {
      told += row.seconds;
    } else if (row.seconds > 0.005 * all) {
      const auto found = rates.find(row.name);
      const KernelRate rate = found == rates.end() ? KernelRate{} : found->second;
      std::printf(
          "not told: %s, %.1f %% of the kernels' time; %.0f %% of it known; launched %ld times, "
          "known %ld, captured %ld\n",
          row.name.c_str(), 100 * row.seconds / all, 100 * rate.covered,
          static_cast<long>(rate.launches), static_cast<long>(rate.known),
          static_cast<long>(rate.captured));
    }
  }
  return all > 0 ? told / all : 0;
}

std::vector<MusicRequest> batch_of(int64_t count) {
  std::vector<MusicRequest> batch(static_cast<size_t>(count));
  for (size_t i = 0; i < batch.size(); ++i) {
    batch[i].seed = i;
    for (size_t t = 0; t < 3 + i % 5; ++t)
      batch[i].text_ids.push_back(static_cast<int64_t>(3 + i + t));
  }
  return batch;
}

}  // namespace

TEST(GpuProfile, AKernelIsLinkedToTheProductThatLaunchedIt) {
  IN_CHILD({
    LogicalDevice& device = music_gpu();
    DeviceScope scope(device);
    const at::Tensor a = at::ones({2048, 1024}, scope.options().dtype(at::kBFloat16));
    const at::Tensor b = at::ones({1024, 512}, scope.options().dtype(at::kBFloat16));
    at::Tensor c = at::mm(a, b);
    at::mul_out(c, c, c);
    device.compute_stream().synchronize();
    OperationRecord operations;
    KernelRecord kernels;
    DoubleTrace trace(/*cuda=*/true, /*linked=*/true, Clock::now());
    at::mm_out(c, a, b);
    at::mul_out(c, c, c);
    device.compute_stream().synchronize();
    trace.stop(operations, kernels);
    ASSERT_EQ(kernels.failure, "");
    ASSERT_GE(kernels.kernels.size(), 2U);
    const KernelRates rates = kernel_rates({.operations = operations, .kernels = kernels}, kernels,
                                           1, device.info().cuda_index);
    double flops = 0;
    double bytes = 0;
    for (const TracedKernel& kernel : kernels.kernels) {
      const auto rate = rates.find(short_kernel_name(kernel.name));
      if (rate == rates.end()) continue;
      flops += rate->second.flops * (kernel.end - kernel.start);
      if (rate->second.flops <= 0) bytes += rate->second.bytes * (kernel.end - kernel.start);
    }
    EXPECT_NEAR(flops, 2.0 * 2048 * 1024 * 512, 1e3);
    EXPECT_NEAR(bytes, 3.0 * 2048 * 512 * 2, 1e3);
  });
}

TEST(GpuProfile, AttentionTellsThePairsOfItsSequences) {
  IN_CHILD({
    LogicalDevice& device = music_gpu();
    DeviceScope scope(device);
    constexpr int64_t heads = 2;
    constexpr int64_t places = 300;
    GptAttention attention(heads, 64, places, 3);
    if (attention.own_kernels()) {
      const auto halves = scope.options().dtype(at::kBFloat16);
      const auto floats = scope.options().dtype(at::kFloat);
      const PackedSequences sequences{
          at::tensor({0, 100, 164, 300}, at::kInt).to(device.torch_device()), 136};
      const at::Tensor qkv = at::randn({places, 3, heads, 64}, halves);
      const at::Tensor out = at::empty({places, heads, 64}, halves);
      const at::Tensor sums = at::empty({heads, places}, floats);
      const at::Tensor dots = at::empty({heads, places}, floats);
      const at::Tensor gradient = at::empty_like(qkv);
      const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
      OperationTrace trace(Clock::now());
      trace.start();
      attention.begin(sequences, places, stream);
      attention.forward(qkv, sequences, out, sums, stream);
      attention.backward(out, qkv, out, sums, sequences, gradient, dots, stream);
      const OperationRecord record = trace.stop();
      const double pairs = 100 * 101 / 2.0 + 64 * 65 / 2.0 + 136 * 137 / 2.0;
      std::map<std::string, double> flops;
      for (const TracedOperation& one : record.operations)
        flops[record.names[one.name]] += one.flops;
      EXPECT_EQ(flops["tandem::attention_forward"], 4 * pairs * heads * 64);
      EXPECT_EQ(flops["tandem::query_backward"], 6 * pairs * heads * 64);
      EXPECT_EQ(flops["tandem::key_value_backward"], 8 * pairs * heads * 64);
    }
  });
}

TEST(GpuProfile, AStepOfTrainingAddsUpAndItsKernelsHaveTheirShareOfTheLimit) {
  IN_CHILD({
    music_gpu();
    Config config;
    const std::filesystem::path text = std::filesystem::temp_directory_path() /
                                       ("tandem-gpu-profile-" + std::to_string(getpid()) + ".txt");
    std::string words;
    for (int i = 0; i < 20000; ++i)
      words += "all work and no play, line " + std::to_string(i) + "\n";
    write_file_atomically(text, words);
    config.data.train_data = text.string();
    config.data.batch_size = 32;
    config.training.stage = "bytes";
    config.training.precision = "bf16";
    config.model.size = "small";
    const Profile profile =
        profile_training(config, {.steps = 10, .traced_steps = 3, .cost_rounds = 3});
    remove_tree(text);
    const ProfiledReplica& replica = profile.replicas.front();
    EXPECT_GT(step_figures_of(profile, replica).accounted, 0.97);
    if (profile.cost.told()) {
      EXPECT_LT(profile.cost.timing(), 0.03);
    } else {
      std::printf("too busy to tell what timing costs: rounds differ by %.0f %%\n",
                  100 * profile.cost.noise);
    }
    EXPECT_EQ(profile.work_failure, "");
    const auto rows = kernel_rows(profile, 0);
    const double told = told_share(profile);
    std::printf("of the kernels' time %.0f %% is told\n", 100 * told);
    EXPECT_GT(told, 0.6);
    for (const WorkRow& row : rows)
      if (row.limit > 0 && row.seconds > 1e-5) {
        EXPECT_LT(row.limit, 3) << row.name;
      }
  });
}

TEST(GpuProfile, ABatchOfClipsAddsUpAndItsKernelsHaveTheirShareOfTheLimit) {
  IN_CHILD({
    LogicalDevice& device = music_gpu();
    const at::NoGradGuard no_gradients;
    Musicgen model = Musicgen::make("small", 1);
    const MusicProfileTask task{.model = model,
                                .devices = {&device},
                                .shares = {8},
                                .engine = {.precision = "fp16"},
                                .music = {.new_tokens = 200, .longest_text = 16},
                                .request = [](int64_t clip) { return batch_of(8)[clip % 8]; },
                                .format = {.rate = 32000}};
    const Profile profile =
        profile_generation(task, {.steps = 3, .traced_steps = 1, .cost_rounds = 2});
    const ProfiledReplica& replica = profile.replicas.front();
    const StepFigures step = step_figures_of(profile, replica);
    EXPECT_GT(step.accounted, 0.97);
    EXPECT_EQ(profile.music->decoding_steps, 200);
    EXPECT_EQ(profile.work_failure, "");
    EXPECT_EQ(replica.captures, 0);
    const auto rows = kernel_rows(profile, 0);
    const double told = told_share(profile);
    std::printf("of the kernels' time %.0f %% is told\n", 100 * told);
    EXPECT_GT(told, 0.8);
    for (const WorkRow& row : rows)
      if (row.limit > 0 && row.seconds > 1e-5) {
        EXPECT_LT(row.limit, 5) << row.name;
      }
    std::printf("%s\n", profile_text(profile).c_str());
  });
}

TEST(GpuProfile, StepsThatAreNotCapturedDrawTheSameCodes) {
  IN_CHILD({
    LogicalDevice& device = music_gpu();
    const at::NoGradGuard no_gradients;
    Musicgen model = Musicgen::make("tiny", 1);
    model.decoder = lively_decoder(model.config.decoder, model.config.text.width);
    const MusicOptions options{.new_tokens = 40, .longest_text = 16};
    std::vector<std::vector<MusicClip>> made;
    for (const bool capture : {true, false}) {
      const auto engine = make_music_engine(model, device, {.capture = capture});
      auto& clips = made.emplace_back(5);
      engine->generate(batch_of(5), options,
                       [&](size_t index, MusicClip clip) { clips[index] = std::move(clip); });
      engine->finish();
      EXPECT_EQ(engine->counters().captures, capture ? 1u : 0u);
    }
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_TRUE(at::equal(made[0][i].codes, made[1][i].codes)) << i;
      EXPECT_TRUE(at::equal(made[0][i].sound, made[1][i].sound)) << i;
    }
  });
}

}  // namespace tandem
