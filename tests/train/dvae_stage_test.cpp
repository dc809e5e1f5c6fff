#include "train/stages/dvae_stage.h"

#include <gtest/gtest.h>

#include <set>

#include "data/feed/speech_corpus_folder.h"
#include "device/registry.h"
#include "models/xtts/mel_stats.h"
#include "nn/tensors.h"
#include "support/tiny_xtts.h"
#include "train/dvae_making.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

struct DvaeRun {
  DvaeRun() {
    config.data = SpeechFolder::settings();
    config.data.train_data = speech.index;
    config.data.validation_share = 0.2;
    config.observe.sample_count = 1;
    parts.xtts = Xtts::make(xtts_preset("tiny"), 1);
    parts.xtts.mel_stats = at::Tensor();
    parts.vocabulary = speech.folder.write("model/vocab.json", tiny_vocabulary());
  }
  std::unique_ptr<DvaeStage> open() {
    return std::make_unique<DvaeStage>(config, parts, DeviceRegistry::get().cpu(),
                                       speech.bad_list());
  }
  SpeechFolder speech{24};
  Config config;
  VoiceParts parts;
};

Batch made_by(BatchMaker& maker, int64_t index) {
  const auto host = maker.make_host_batch(false);
  maker.plan(*host, index);
  for (int task = 0; task < host->tasks; ++task) maker.run_task(*host, task);
  return maker.prepare(*host);
}

void train(DvaeStage& stage, Learner& learner, int64_t steps) {
  for (int64_t step = 1; step <= steps; ++step) {
    clear_gradients(learner);
    learner.add_gradients(0, made_by(stage.batches(), step - 1), step_values(step));
    descend(learner, 0.05);
    learner.finish_step(step_values(step), taken());
  }
}

NamedTensors weights_of(Learner& learner) {
  NamedTensors out;
  for (const Phase& phase : learner.phases())
    for (const TrainedTensor& trained : phase.tensors)
      out.emplace_back(trained.name, trained.tensor->detach());
  return out;
}

std::string fact(const Stage& stage, const std::string& name) {
  for (const auto& [key, value] : stage.facts())
    if (key == name) return value;
  return "";
}

}  // namespace

TEST(DvaeStage, TrainsFromNothingAndExportsTheCodesMostUsed) {
  DvaeRun run;
  const auto stage = run.open();
  EXPECT_EQ(fact(*stage, "DVAE"), "new, 512 codes, of which the 64 most used are kept");
  EXPECT_EQ(fact(*stage, "mel statistics"), "measured on the corpus");
  EXPECT_GT(stage->batches_an_epoch(), 0);
  ASSERT_NE(stage->validation(), nullptr);
  EXPECT_GT(stage->validation_batches(), 0);
  EXPECT_NEAR(stage->tokens_a_batch(), stage->seconds_a_batch() * 22050 / 256, 1e-6);
  const auto learner = stage->make_learner(DeviceRegistry::get().cpu());
  EXPECT_EQ(buffer_of(*learner, "embed").size(1), 512);
  train(*stage, *learner, 4);

  const TestFolder folder;
  stage->export_model(weights_of(*learner), learner->buffers(), folder.path().string());
  const Dvae written = Dvae::load((folder / "dvae.safetensors").string());
  EXPECT_EQ(written.encoder.size.codes, 64);
  const at::Tensor counts = buffer_of(*learner, "cluster_size");
  const at::Tensor kept = select_codes(counts, 64);
  EXPECT_TRUE(
      at::equal(written.encoder.codebook, buffer_of(*learner, "embed").index_select(1, kept)));
  EXPECT_TRUE(at::equal(written.cluster_size, counts.index_select(0, kept)));
  EXPECT_TRUE(at::equal(written.first.weight, find_weight(*learner, "decoder.0.weight")));
  const at::Tensor stats = read_mel_stats(find_mel_stats(folder.path()));
  EXPECT_EQ(stats.size(0), 80);
  EXPECT_GT(number(stats.min()), 0);

  ASSERT_TRUE(stage->selection());
  const DvaeSelection& selection = *stage->selection();
  EXPECT_TRUE(selection.judged);
  EXPECT_NEAR(selection.counted_share, number(counts.index_select(0, kept).sum() / counts.sum()),
              1e-6);
  EXPECT_GE(selection.clip_share, 0);
  EXPECT_LE(selection.clip_share, 1);
  EXPECT_GT(selection.loss_before, 0);
  EXPECT_GT(selection.loss_after, 0);
  EXPECT_TRUE(contains(fact(*stage, "codes kept"), "64 of 512")) << fact(*stage, "codes kept");
}

TEST(DvaeStage, ValidatesOnClipsItDoesNotTrainOn) {
  DvaeRun run;
  const auto stage = run.open();
  const auto learner = stage->make_learner(DeviceRegistry::get().cpu());
  std::set<int64_t> trained, held;
  for (int64_t i = 0; i < stage->batches_an_epoch(); ++i)
    for (const int64_t clip : made_by(stage->batches(), i).clips) trained.insert(clip);
  for (int64_t i = 0; i < stage->validation_batches(); ++i) {
    const Batch batch = made_by(*stage->validation(), i);
    held.insert(batch.clips.begin(), batch.clips.end());
    const Measured measured = learner->validate(batch);
    EXPECT_EQ(static_cast<size_t>(measured.sums.size(0)), learner->measures().size());
    EXPECT_GT(number(measured.counts.min()), 0);
  }
  EXPECT_EQ(trained.size() + held.size(), 24u);
  for (const int64_t clip : held) EXPECT_FALSE(trained.contains(clip)) << clip;
}

TEST(DvaeStage, ShowsTheClipBesideWhatItsCodesSayAndLetsBothBeHeard) {
  DvaeRun run;
  const auto stage = run.open();
  const auto learner = stage->make_learner(DeviceRegistry::get().cpu());
  const std::vector<Sample> samples = stage->samples(*learner);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].name, "validation/1");
  EXPECT_EQ(samples[1].name, "validation/1-clip");
  EXPECT_EQ(samples[0].mel.size(0), 80);
  const int64_t frames = (samples[0].mel.size(1) - 4) / 2;
  EXPECT_EQ(samples[0].wave.size(0), (frames - 1) * 256);
  EXPECT_EQ(samples[0].rate, 22050);
  EXPECT_TRUE(samples[0].wave.isfinite().all().item<bool>());
  EXPECT_GT(number(samples[1].wave.abs().max()), 0.05) << "a clip at 0.4 is to be heard";
}

TEST(DvaeStage, LearnersOfAllDevicesStartEqualAndApart) {
  DvaeRun run;
  const auto stage = run.open();
  const auto one = stage->make_learner(DeviceRegistry::get().cpu());
  const auto other = stage->make_learner(DeviceRegistry::get().cpu());
  EXPECT_TRUE(same_bits(find_weight(*one, "encoder.0.0.weight"),
                        find_weight(*other, "encoder.0.0.weight")));
  train(*stage, *one, 1);
  EXPECT_FALSE(same_bits(find_weight(*one, "encoder.0.0.weight"),
                         find_weight(*other, "encoder.0.0.weight")));
  EXPECT_EQ(number(buffer_of(*other, "cluster_size").sum()), 0);
}

TEST(DvaeStage, OfAModelFolderKeepsEveryCodeAtItsIndex) {
  DvaeRun run;
  run.parts.pretrained = true;
  run.parts.trained = {"dvae", "gpt"};
  run.parts.dvae = Dvae::make(run.parts.xtts.config, 9);
  run.parts.xtts.mel_stats = values("stats", {80}, 1, 8);
  const auto stage = run.open();
  EXPECT_EQ(fact(*stage, "DVAE"), "64 codes of the model folder, each keeps its index");
  EXPECT_EQ(fact(*stage, "mel statistics"), "of the model folder");
  const auto learner = stage->make_learner(DeviceRegistry::get().cpu());
  train(*stage, *learner, 12);
  const TestFolder folder;
  stage->export_model(weights_of(*learner), learner->buffers(), folder.path().string());
  EXPECT_FALSE(stage->selection());
  const Dvae written = Dvae::load((folder / "dvae.safetensors").string());
  const at::Tensor start = run.parts.dvae->encoder.codebook;
  ASSERT_EQ(written.encoder.codebook.sizes(), start.sizes());
  // A code that was never chosen has not moved, none was revived.
  const at::Tensor moved = (written.encoder.codebook - start).abs().amax(0);
  EXPECT_GT(number((moved < 1e-3).sum()), 32);
}

TEST(DvaeStage, RefusesCodesThatDoNotFit) {
  DvaeRun run;
  run.config.training.dvae_codes = 10;
  const Thrown few = thrown_by([&] { run.open(); });
  EXPECT_EQ(few.kind, "config");
  EXPECT_EQ(few.sentence, "training.dvae_codes is 10; the model needs 64 codes");
  run.config.training.dvae_codes = 0;
  run.config.model.pretrained = "some/folder";
  run.parts.pretrained = true;
  run.parts.trained = {"dvae", "gpt"};
  run.parts.dvae = Dvae::make(run.parts.xtts.config, 9, 100);
  const Thrown many = thrown_by([&] { run.open(); });
  EXPECT_EQ(many.kind, "config");
  EXPECT_EQ(many.sentence, "the DVAE of `some/folder` has 100 codes; its GPT knows 64");
}

TEST(DvaeStage, SaysWhenItLeavesATrainedGptWithoutItsCodes) {
  DvaeRun run;
  run.parts.pretrained = true;
  run.config.model.pretrained = "some/folder";
  for (const bool spoken : {true, false}) {
    if (spoken)
      run.parts.trained = {"gpt"};
    else
      run.parts.trained = {};
    testing::internal::CaptureStderr();
    const auto stage = run.open();
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(contains(said, "`some/folder` holds no trained DVAE"), spoken) << said;
    EXPECT_TRUE(contains(fact(*stage, "DVAE"), "new, 512 codes"));
  }
}

TEST(DvaeStage, TrainsWithTheCodesAskedFor) {
  DvaeRun run;
  run.config.training.dvae_codes = 64;
  const auto stage = run.open();
  EXPECT_EQ(fact(*stage, "DVAE"), "new, 64 codes");
  const auto learner = stage->make_learner(DeviceRegistry::get().cpu());
  EXPECT_EQ(buffer_of(*learner, "embed").size(1), 64);
  EXPECT_TRUE(contains(stage->fingerprint(), "codes=64 width=32"));
}

TEST(DvaeStage, RefusesToExportHalfADvae) {
  DvaeRun run;
  const auto stage = run.open();
  const auto learner = stage->make_learner(DeviceRegistry::get().cpu());
  NamedTensors weights = weights_of(*learner);
  weights.pop_back();
  const TestFolder folder;
  const Thrown thrown =
      thrown_by([&] { stage->export_model(weights, learner->buffers(), folder.path().string()); });
  EXPECT_EQ(thrown.kind, "internal");
  EXPECT_EQ(thrown.sentence, "the trained DVAE has no `decoder.6.bias`");
}

}  // namespace tandem::tests
