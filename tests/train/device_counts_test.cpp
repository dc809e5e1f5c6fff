// One training on one device, on several, and with its data on one of its own: what it reports is
// the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "train/seen_run.h"
#include "train/voice_corpus.h"

namespace tandem {
namespace {

DeviceRequest mirrored(int devices) { return {.multi_gpu = true, .simulate_gpus = devices}; }
DeviceRequest data_and_two_models() {
  return {.data_gpu = "0", .model_gpu = "1,2", .simulate_gpus = 3};
}

Figures without(const std::vector<std::string>& names, Figures figures) {
  std::erase_if(figures, [&](const auto& one) {
    return std::ranges::any_of(names,
                               [&](const auto& name) { return one.first.ends_with(" " + name); });
  });
  return figures;
}

// `config` trained in a folder of its own for each choice of devices.
// `allowed`: of each figure.
void expect_same_on_all(Config config, const std::vector<std::string>& but = {"norm"},
                        double allowed = 1e-6) {
  const std::string folder = config.paths.checkpoint_dir;
  config.training.multi_gpu = true;
  Figures alone;
  for (const DeviceRequest& devices :
       {mirrored(1), mirrored(2), mirrored(4), data_and_two_models()}) {
    const std::string name = std::to_string(*devices.simulate_gpus) + devices.data_gpu.value_or("");
    SCOPED_TRACE(name);
    config.paths.checkpoint_dir = folder + name;
    const Figures found = without(but, figures_on(devices, config));
    if (alone.empty()) alone = found;
    EXPECT_TRUE(alone.contains("step 2 loss") && alone.contains("validation 2 loss"));
    expect_near(found, alone, allowed);
  }
}

void make_dvae(const VoiceCorpus& corpus) {
  figures_on(mirrored(1), corpus.config("dvae", 4, "start"));
}

TEST(DeviceCounts, ChangeNoLossOfBytes) {
  const TestFolder folder;
  Config config;
  config.data.train_data = TANDEM_SOURCE_DIR "/LICENSE";
  config.data.batch_size = 10;  // does not divide by 4: the last replica takes the remainder
  config.data.model_start_delay = 0.2;
  config.training.max_steps = 20;
  config.training.val_step = 2;
  config.training.check_replicas = 1;
  config.training.ema_decay = 0.5;
  config.paths.checkpoint_dir = (folder / "run").string();
  expect_same_on_all(config);
}

// Codes of a new one are vectors of its first batches, some as near each other as a float's last
// bits: which of two is chosen these bits tell, and it changes no loss.
TEST(DeviceCounts, ChangeNoLossOfANewDvae) {
  const VoiceCorpus corpus;
  expect_same_on_all(corpus.config("dvae", 4, "dvae"), {"norm", "perplexity", "codes_used"});
}

TEST(DeviceCounts, ChangeNoLossOfADvaeThatGoesOn) {
  const VoiceCorpus corpus;
  figures_on(mirrored(1), corpus.config("dvae", 20, "start"));
  Config config = corpus.config("dvae", 4, "dvae");
  config.model.pretrained = (corpus.folder / "start/model").string();
  expect_same_on_all(config);
}

TEST(DeviceCounts, ChangeNoLossOfAGpt) {
  const VoiceCorpus corpus;
  make_dvae(corpus);
  Config config = corpus.gpt_config(4, "gpt");
  config.training.learning_rate = 1e-3;
  config.training.dropout = 0.2;
  config.training.code_noise = 0.3;
  expect_same_on_all(config);
}

TEST(DeviceCounts, ChangeNoLossOfADecoder) {
  const VoiceCorpus corpus;
  make_dvae(corpus);
  figures_on(mirrored(1), corpus.gpt_config(2, "voice"));
  Config config = corpus.decoder_config(2, "decoder");
  // AdamW's first step goes by the sign of the last bits, where a gradient is hardly one.
  config.training.learning_rate = 1e-5;
  config.training.own_codes_share = 0.5;
  config.data.validation_share = 0.01;         // one clip: most replicas have none
  expect_same_on_all(config, {"norm"}, 1e-5);  // spectra of sound that is nearly silent
}

// Counted, not told.
TEST(DeviceCounts, TwoModelsTrainOnWhatTheDataDevicePrepares) {
  const VoiceCorpus corpus;
  make_dvae(corpus);
  capture([] { configure_devices(data_and_two_models()); });
  Config config = corpus.gpt_config(4, "gpt");
  const Seen seen = run(config);
  ASSERT_FALSE(seen.failed) << seen.error.what();
  const auto did = [&](const char* device, const char* operation) {
    const auto& counts = seen.result.devices.at(device).by_name;
    const auto found = counts.find(operation);
    return found == counts.end() ? uint64_t{0} : found->second;
  };
  const char* backward = "aten::native_layer_norm_backward";
  EXPECT_GE(did("/GPU:1", backward), 4u);
  EXPECT_EQ(did("/GPU:2", backward), did("/GPU:1", backward));
  EXPECT_EQ(did("/GPU:0", backward), 0u);
  for (const char* preparation : {"tandem::log_mel", "tandem::codes", "tandem::voice_slices"}) {
    EXPECT_GT(did("/GPU:0", preparation), 0u) << preparation;
    EXPECT_EQ(did("/GPU:1", preparation) + did("/GPU:2", preparation), 0u) << preparation;
  }
}

}  // namespace
}  // namespace tandem
