// On a machine with a real GPU: build/bin/gpu_tests.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <gtest/gtest.h>
#include <thread>

#include "device/communicator.h"
#include "device/device_scope.h"
#include "device/probe.h"
#include "device/registry.h"
#include "device/torch_errors.h"
#include "gpu/in_child.h"
#include "nn/checksum.h"
#include "support/captured.h"
#include "support/temporary_folder.h"
#include "tandem/trainer.h"

namespace tandem {
namespace {

// The licence beside the program in dist/, or in the working folder: the repository.
std::string training_text() {
  const auto beside =
      std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "LICENSE";
  return std::filesystem::exists(beside) ? beside.string() : "LICENSE";
}

bool has_context() { return cuda_driver_state() == DriverState::has_context; }

TEST(Gpu, NoContextExistsUntilWorkBegins) {
  IN_CHILD({
    EXPECT_LT(static_cast<int>(cuda_driver_state()), static_cast<int>(DriverState::initialised));
    const GpuProbe probe = probe_gpus();
    EXPECT_EQ(probe.source, "nvml");
    ASSERT_GE(probe.gpus.size(), 1u);
    EXPECT_GT(probe.gpus[0].memory_total, 1ull << 30);
    configure_devices({});
    EXPECT_LT(static_cast<int>(cuda_driver_state()), static_cast<int>(DriverState::initialised));
    const auto context = get_device_context();
    EXPECT_EQ(context.device(), "/GPU:0");
    EXPECT_TRUE(has_context());
  });
}

TEST(Gpu, TwoGpusOnOneIsRefused) {
  IN_CHILD({
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    const Captured printed = capture([] { EXPECT_FALSE(early_gpu_configuration(0, 1)); });
    EXPECT_EQ(
        printed.err,
        "❌ Multi-GPU requires at least 2 GPUs, found 1\n   Falling back to single-GPU mode\n");
  });
}

TEST(Gpu, ConfigurationAfterACudaCallIsRefused) {
  IN_CHILD({
    at::zeros({1}, at::kCUDA);
    const Captured printed = capture([] { EXPECT_FALSE(early_gpu_configuration(0, 1)); });
    EXPECT_EQ(
        printed.err,
        "❌ Multi-GPU setup failed: Physical devices cannot be modified after being initialized\n"
        "   They were initialised by a CUDA call that created a context on a GPU.\n"
        "   Call early_gpu_configuration() before any work on a GPU.\n");
  });
}

TEST(Gpu, AHardLimitStopsAnAllocationBeyondIt) {
  IN_CHILD({
    DeviceRequest request;
    request.memory_isolation = true;
    request.model_gpu_memory = 512;
    configure_devices(request);
    DeviceScope scope(DeviceRegistry::get().find("/GPU:0"));
    const at::Tensor fits = at::empty({400 << 20}, scope.options().dtype(at::kByte));
    try {
      at::empty({200 << 20}, scope.options().dtype(at::kByte));
      ADD_FAILURE() << "600 MB fit into 512";
    } catch (const std::exception& error) {
      EXPECT_EQ(explain_with_torch(error).kind, ErrorKind::memory);
    }
    // The cache obeys as well: what LibTorch holds of the card stays under the limit.
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(0);
    EXPECT_LE(stats.reserved_bytes[0].peak, int64_t{512} << 20);
    EXPECT_NEAR(c10::cuda::CUDACachingAllocator::getMemoryFraction(0) *
                    static_cast<double>(DeviceRegistry::get().probe().gpus[0].memory_total),
                512.0 * (1 << 20), 8.0 * (1 << 20));
  });
}

TEST(Gpu, MemoryGrowsOnDemand) {
  IN_CHILD({
    configure_devices({});
    DeviceScope scope(DeviceRegistry::get().find("/GPU:0"));
    const at::Tensor small = at::zeros({1 << 20}, scope.options().dtype(at::kByte));
    EXPECT_LT(c10::cuda::CUDACachingAllocator::getDeviceStats(0).reserved_bytes[0].current,
              int64_t{64} << 20);
    const auto segments = c10::cuda::CUDACachingAllocator::snapshot().segments;
    ASSERT_FALSE(segments.empty());
    EXPECT_TRUE(segments[0].is_expandable);
  });
}

TEST(SplitGpu, PartsHaveOwnStreamsLedgersAndLimits) {
  IN_CHILD({
    configure_devices(split(2));
    LogicalDevice& first = DeviceRegistry::get().find("/GPU:0");
    LogicalDevice& second = DeviceRegistry::get().find("/GPU:1");
    second.memory().set_limit(1 << 20);
    count_operations(true);
    at::Tensor a;
    cudaStream_t streams[2];
    {
      DeviceScope scope(first);
      streams[0] = at::cuda::getCurrentCUDAStream();
      a = at::ones({1 << 20}, scope.options().dtype(at::kFloat)).requires_grad_(true);
      (a * a).sum().backward();  // autograd's own thread: its work is this device's too
    }
    EXPECT_EQ(second.operations().total(), 0u);
    EXPECT_EQ(first.operations().by_name().count("aten::expand"), 1u);
    EXPECT_GE(first.memory().used(), 8u << 20);  // the tensor and its gradient
    {
      DeviceScope scope(second);
      streams[1] = at::cuda::getCurrentCUDAStream();
      const Error error = error_of([&] { at::ones({1 << 20}, scope.options().dtype(at::kFloat)); });
      EXPECT_EQ(error.kind(), ErrorKind::memory);
    }
    EXPECT_NE(streams[0], streams[1]);
    a.reset();
    EXPECT_EQ(first.memory().used(), 0u);
  });
}

TEST(SplitGpu, StreamsAndEventsOrderWork) {
  IN_CHILD({
    configure_devices(split(2));
    LogicalDevice& first = DeviceRegistry::get().find("/GPU:0");
    LogicalDevice& second = DeviceRegistry::get().find("/GPU:1");
    const auto options = at::TensorOptions().dtype(at::kFloat).device(at::kCUDA);
    at::Tensor value, copy;
    for (int i = 0; i < 200; ++i) {
      first.compute_stream().run([&] {
        const at::Tensor work = at::randn({1024, 1024}, options);
        value = at::full({1}, static_cast<double>(i), options) + 0 * work.matmul(work).sum();
      });
      second.compute_stream().wait(first.compute_stream().record());
      second.compute_stream().run([&] { copy = value.clone(); });
      second.compute_stream().synchronize();
      EXPECT_EQ(copy.to(at::kCPU).const_data_ptr<float>()[0], static_cast<float>(i));
    }
  });
}

TEST(SplitGpu, CollectivesSumInRankOrder) {
  IN_CHILD({
    configure_devices(split(4));
    std::vector<LogicalDevice*> devices;
    for (const auto& gpu : DeviceRegistry::get().gpus()) devices.push_back(gpu.get());
    auto group = make_in_process_group(devices, std::chrono::seconds(60));
    const at::Tensor inputs = at::randn({4, 100003}, at::kFloat);
    const at::Tensor cuda = inputs.to(at::kCUDA);
    const at::Tensor expected = (((cuda[0] + cuda[1]) + cuda[2]) + cuda[3]).to(at::kCPU);
    at::cuda::device_synchronize();
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < 4; ++rank) {
      threads.emplace_back([&, rank] {
        DeviceScope scope(*devices[rank]);
        for (int i = 0; i < 50; ++i) {
          at::Tensor mine = inputs[static_cast<int64_t>(rank)].to(at::kCUDA);
          group[rank]->all_reduce(mine, Reduce::sum)->wait();
          EXPECT_TRUE(at::equal(mine.to(at::kCPU), expected)) << rank << " " << i;
        }
      });
    }
    for (auto& thread : threads) thread.join();
  });
}

TEST(Checksum, IsTheSameOnGpuAndHost) {
  IN_CHILD({
    for (int64_t bytes : {0, 1, 2, 3, 4, 5, 1000, 1027, 1 << 20, (1 << 24) + 3}) {
      const at::Tensor host = at::randint(0, 256, {bytes + 1}, at::kByte);
      for (int64_t start : {0, 1}) {  // also unaligned
        const at::Tensor view = host.narrow(0, start, bytes);
        EXPECT_TRUE(at::equal(checksum(view),
                              checksum(host.to(at::kCUDA).narrow(0, start, bytes)).to(at::kCPU)))
            << bytes;
      }
    }
  });
}

void train_on_split(int parts, bool dual, std::filesystem::path folder) {
  DeviceRequest request = split(parts);
  request.multi_gpu = true;
  if (dual) {
    request.data_gpu = "0";
    request.model_gpu = "1";
  }
  Config config;
  config.data.train_data = training_text();
  config.training.max_steps = 60;
  config.training.multi_gpu = true;
  config.training.check_replicas = 1;
  config.paths.checkpoint_dir = folder.string();
  configure_devices(request);
  count_operations(true);
  const TrainResult result = train(config);
  EXPECT_LT(result.last_loss, 3.5);
  if (dual) {
    EXPECT_EQ(result.devices.at("/GPU:0").by_name.count("aten::layer_norm"), 0u);
    // A captured step launches its work without calling it.
    EXPECT_GE(result.devices.at("/GPU:1").by_name.at("aten::layer_norm"), 2u);
    EXPECT_GE(result.devices.at("/GPU:0").by_name.at("aten::index_select"), 60u);
  }
}

TEST(SplitGpu, TrainsDualMirroredAndOneDataDeviceWithReplicas) {
  IN_CHILD({
    TestFolder folder;
    train_on_split(2, true, folder / "dual");
  });
  IN_CHILD({
    TestFolder folder;
    train_on_split(4, false, folder / "mirrored");
  });
  IN_CHILD({
    TestFolder folder;
    train_on_split(4, true, folder / "fan-out");
  });
}

}  // namespace
}  // namespace tandem
