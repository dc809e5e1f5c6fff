// bf16 on the GPU beside coqui-tts in float32. PARITY names what
// `tests/parity/compare_training.py BUILD --write FOLDER` left: model, batches, and the losses of
// coqui-tts.
#include "parity/given_training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "device/registry.h"
#include "gpu/in_child.h"
#include "tandem/devices.h"
#include "util/atomic_file.h"

namespace tandem {

TEST(GpuParity, TwoHundredStepsInHalfPrecisionEndWhereCoquisEnd) {
  if (!std::getenv("PARITY"))
    GTEST_SKIP() << "PARITY names no folder; scripts/gpu-check.sh says how to make one";
  IN_CHILD({
    const std::string folder = std::getenv("PARITY");
    configure_devices({});
    const auto theirs = nlohmann::json::parse(read_file(folder + "/losses.json"));
    const auto ours = train_as_given({.model = folder + "/model",
                                      .batches = folder + "/batches.safetensors",
                                      .steps = static_cast<int64_t>(theirs.size()),
                                      .precision = "bf16"},
                                     DeviceRegistry::get().find("/GPU:0"));
    constexpr size_t batches = 6;  // each once
    double text = 0;
    double audio = 0;
    ASSERT_GE(ours.size(), batches);
    for (size_t i = ours.size() - batches; i < ours.size(); ++i) {
      const double expected_text = theirs[i][0].get<double>();
      const double expected_audio = theirs[i][1].get<double>();
      text += std::abs(ours[i].first - expected_text) / expected_text / batches;
      audio += std::abs(ours[i].second - expected_audio) / expected_audio / batches;
    }
    std::printf("apart at the end: text %.2f %%, audio %.2f %%\n", 100 * text, 100 * audio);
    EXPECT_LE(text, 2e-2);
    EXPECT_LE(audio, 2e-2);
  });
}

}  // namespace tandem
