// What tests of training batches share: the demo's clips (real speech, 16 kHz), a narrow DVAE, and
// batches without threads.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "data/corpus/prepare.h"
#include "data/feed/clip_shape.h"
#include "data/feed/feed.h"
#include "data/feed/speech_corpus_folder.h"
#include "device/device_scope.h"
#include "device/registry.h"
#include "models/xtts/dvae_encoder.h"
#include "train/batches/gpt_batches.h"
#include "train/batches/voice_sound.h"

namespace tandem::tests {

// The demo, or some of its clips, indexed in a folder of the test's own.
struct DemoSpeech {
  explicit DemoSpeech(const std::vector<std::string>& names = {}) {
    const std::string demo = TANDEM_SOURCE_DIR "/assets/demo";
    std::string input = demo;
    if (!names.empty()) {
      std::string table;
      for (const std::string& name : names) {
        table += name + "|" + name + "|words of " + name + "\n";
        std::filesystem::create_directories(folder / "wavs");
        std::filesystem::copy_file(demo + "/wavs/" + name + ".flac",
                                   folder / ("wavs/" + name + ".flac"));
      }
      folder.write("metadata.csv", table);
      input = folder.path().string();
    }
    index = prepare_corpus({.input = input,
                            .out = (folder / "demo.index").string(),
                            .limits = {.outlier_z = 0},
                            .quick = true,
                            .workers = 1})
                .index;
  }
  TestFolder folder;
  std::string index;
};

// 64 codes, 16 channels; with mel statistics. As coqui-tts makes it.
inline const DvaeEncoder& narrow_dvae_encoder() {
  static const DvaeEncoder encoder =
      DvaeEncoder::load(TANDEM_SOURCE_DIR "/tests/models/xtts/fixtures/dvae.safetensors");
  return encoder;
}

inline SpeechFeedOptions voice_feed(const DataConfig& config, int second_rate = 0) {
  return {.seed = 1, .sound = voice_sound(config, 1, second_rate)};
}

// Batch `index`, made on this thread on the CPU.
inline Batch made_batch(BatchMaker& maker, int64_t index) {
  const at::NoGradGuard no_grad;
  const DeviceScope scope(DeviceRegistry::get().cpu());
  const auto host = maker.make_host_batch(false);
  maker.plan(*host, index);
  for (int task = 0; task < host->tasks; ++task) maker.run_task(*host, task);
  Batch batch = maker.prepare(*host);
  for (at::Tensor& field : batch.fields) field = field.clone();
  return batch;
}

inline int64_t number(const at::Tensor& tensor) { return tensor.item<int64_t>(); }

// The clip behind a row alone, as the feed prepares it.
inline Waves clip_alone(const SpeechFeed& speech, const Batch& batch, int64_t row) {
  return read_clip(speech.corpus.index(), batch.clips[static_cast<size_t>(row)],
                   speech.batches.options());
}

}  // namespace tandem::tests
