// Captions read by captured graphs against T5 launched one by one. Needs a GPU.
#include "generate/cuda_caption_reader.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>

#include "device/cuda_owner.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "gpu/in_child.h"
#include "gpu/lively_music.h"
#include "models/musicgen/musicgen.h"

namespace tandem {

TEST(GpuCaptions, AreReadTheSameInAnyOrderAndAsLaunchedOneByOne) {
  IN_CHILD({
    LogicalDevice& device = music_gpu();
    const DeviceScope scope(device);
    const c10::cuda::CUDAStreamGuard guard(raw_cuda_stream(device.compute_stream()));
    const Musicgen model = Musicgen::make("tiny", 1);
    const auto caption = [&](int64_t length, int64_t first) {
      std::vector<int64_t> ids;
      for (int64_t i = 0; i < length; ++i)
        ids.push_back((first + 3 * i) % model.config.text.vocabulary);
      return ids;
    };
    CudaCaptionReader one_by_one(model.text, device, false), captured(model.text, device, true);
    const std::vector<std::vector<int64_t>> captions = {caption(7, 1), caption(40, 2),
                                                        caption(7, 9), caption(1, 5)};
    std::vector<at::Tensor> first;
    for (const auto& ids : captions) {
      first.push_back(captured(ids).clone());
      const at::Tensor expected = one_by_one(ids);
      ASSERT_EQ(first.back().sizes(), expected.sizes());
      EXPECT_LT((first.back() - expected).abs().max().item<double>(), 1e-5) << ids.size();
    }
    EXPECT_GT((first[0] - first[2]).abs().max().item<double>(), 1e-3);
    for (const size_t i : {3, 1, 2, 0}) EXPECT_TRUE(at::equal(captured(captions[i]), first[i]));
    captured.forget();
    for (size_t i = 0; i < captions.size(); ++i)
      EXPECT_TRUE(at::equal(captured(captions[i]), first[i])) << i;
    EXPECT_EQ(captured({}).size(0), 0);
    EXPECT_EQ(captured.weight_bytes(), one_by_one.weight_bytes());
  });
}

}  // namespace tandem
