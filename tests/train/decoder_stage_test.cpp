#include "train/stages/decoder_stage.h"

#include <gtest/gtest.h>

#include <set>

#include "data/feed/speech_corpus_folder.h"
#include "device/registry.h"
#include "nn/tensors.h"
#include "support/tiny_xtts.h"
#include "train/decoder_making.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

struct DecoderRun {
  DecoderRun() {
    config.data = SpeechFolder::settings();
    config.data.batch_size = 3;
    config.data.train_data = speech.index;
    config.data.validation_share = 0.3;
    config.training.segment_codes = 4;
    config.observe.sample_count = 2;
    parts.xtts = Xtts::make(xtts_preset("tiny"), 1);
    parts.dvae = Dvae::make(xtts_preset("tiny"), 1);
    parts.vocabulary = speech.folder.write("model/vocab.json", tiny_vocabulary());
    parts.pretrained = true;
    parts.trained = {"dvae", "gpt"};
  }
  std::unique_ptr<DecoderStage> open() {
    return std::make_unique<DecoderStage>(config, parts, /*on_host=*/true, speech.bad_list());
  }
  SpeechFolder speech{8};
  Config config;
  VoiceParts parts;
};

Batch decoder_batch_of(BatchMaker& maker, int64_t index) {
  const auto host = maker.make_host_batch(false);
  maker.plan(*host, index);
  for (int task = 0; task < host->tasks; ++task) maker.run_task(*host, task);
  Batch batch = maker.prepare(*host);
  batch.whole_rows = batch.rows;
  return batch;
}

LogicalDevice& this_cpu() { return DeviceRegistry::get().cpu(); }

}  // namespace

TEST(DecoderStage, NeedsAVoiceThatHasBeenTrained) {
  DecoderRun run;
  run.parts.trained = {"dvae"};
  Thrown thrown = thrown_by([&] { run.open(); });
  EXPECT_EQ(thrown.kind, "config");
  EXPECT_TRUE(contains(thrown.sentence, "this model's GPT knows nothing yet")) << thrown.sentence;
  EXPECT_EQ(thrown.hint, "train the gpt stage first or give --pretrained");

  run.parts.trained = {"dvae", "gpt"};
  run.parts.dvae->encoder.codebook = at::zeros({32, 48});
  thrown = thrown_by([&] { run.open(); });
  EXPECT_TRUE(contains(thrown.sentence, "the DVAE has 48 codes, the GPT expects 64"))
      << thrown.sentence;

  run.parts.dvae.reset();
  thrown = thrown_by([&] { run.open(); });
  EXPECT_TRUE(contains(thrown.sentence, "has no DVAE (dvae.pth or dvae.safetensors)"))
      << thrown.sentence;

  // New ones of the settings alone.
  Config fresh = run.config;
  thrown = thrown_by([&] { DecoderStage(fresh, this_cpu(), ""); });
  EXPECT_TRUE(contains(thrown.sentence, "knows nothing yet")) << thrown.sentence;
}

TEST(DecoderStage, ItsBatchesTrainItsLearner) {
  DecoderRun run;
  const auto stage = run.open();
  EXPECT_GT(stage->batches_an_epoch(), 1);
  EXPECT_NEAR(stage->tokens_a_batch(), stage->seconds_a_batch() * 22050 / 1024, 1e-6);
  EXPECT_TRUE(contains(stage->fingerprint(), "decoder width=32 latents=64 clips="));
  std::map<std::string, std::string> facts;
  for (const auto& [name, value] : stage->facts()) facts[name] = value;
  EXPECT_EQ(facts.at("window"), "4 codes, 0.18 s");
  EXPECT_EQ(facts.at("own codes"), "25 % of clips");
  EXPECT_TRUE(contains(facts.at("discriminators"), "million parameters, from step 1"));
  const auto learner = stage->make_learner(this_cpu());
  want_gradients(*learner);
  const Batch batch = decoder_batch_of(stage->batches(), 0);
  const at::Tensor terms = learner->add_gradients(0, batch, decoder_step(1)) +
                           learner->add_gradients(1, batch, decoder_step(1));
  EXPECT_GT(number(terms.min()), 0);
  for (const auto& [name, gradient] : decoder_gradients(*learner))
    EXPECT_GT(number(gradient.abs().max()), 0) << name;
}

TEST(DecoderStage, KeepsTheWaysOfAGpuInBf16ForThere) {
  const DecoderLearnerOptions options = decoder_options({.precision = "bf16"}, this_cpu());
  EXPECT_EQ(options.compute, at::kFloat);
  EXPECT_FALSE(options.by_products);
}

TEST(DecoderStage, TakesTheVoiceFromAnotherClipAsTheGptDid) {
  DecoderRun run;
  const auto with_others = run.open();
  const Batch others = decoder_batch_of(with_others->batches(), 0);
  run.config.training.conditioning_clip = "same";
  const auto with_own = run.open();
  const Batch own = decoder_batch_of(with_own->batches(), 0);
  ASSERT_EQ(own.clips, others.clips);
  ASSERT_GT(own.rows, 1);
  for (int64_t row = 0; row < own.rows; ++row)
    EXPECT_TRUE(at::equal(others.fields[gpt_conditioning][row],
                          own.fields[gpt_conditioning][(row + 1) % own.rows]));
  EXPECT_TRUE(at::equal(others.fields[decoder_speakers], own.fields[decoder_speakers]));
}

TEST(DecoderStage, ValidatesOnOtherClips) {
  DecoderRun run;
  const auto stage = run.open();
  ASSERT_NE(stage->validation(), nullptr);
  std::set<int64_t> trained;
  for (int64_t i = 0; i < stage->batches_an_epoch(); ++i)
    for (const int64_t clip : decoder_batch_of(stage->batches(), i).clips) trained.insert(clip);
  const Batch held = decoder_batch_of(*stage->validation(), 0);
  for (const int64_t clip : held.clips) EXPECT_FALSE(trained.contains(clip));
  const auto learner = stage->make_learner(this_cpu());
  EXPECT_EQ(number(learner->validate(held).counts[0]), static_cast<double>(held.rows));
  run.config.data.validation_share = 0;
  const auto without = run.open();
  EXPECT_EQ(without->validation(), nullptr);
  EXPECT_EQ(without->validation_batches(), 0);
}

TEST(DecoderStage, LetsHearItsSoundBesideTheRecordingAndGriffinLim) {
  DecoderRun run;
  const auto stage = run.open();
  const auto learner = stage->make_learner(this_cpu());
  const std::vector<Sample> samples = stage->samples(*learner);
  std::map<std::string, Sample> named;
  for (const Sample& sample : samples) named[sample.name] = sample;
  EXPECT_EQ(named.size(), samples.size());
  for (const char* kind : {"decoder", "recording", "griffin_lim"}) {
    const Sample& sample = named.at(std::string("validation/1/") + kind);
    EXPECT_EQ(sample.rate, 24000);
    EXPECT_GT(sample.wave.size(0), 10000);
    EXPECT_EQ(sample.mel.size(0), 80);
    EXPECT_TRUE(contains(sample.text, "clip number")) << sample.text;
  }
  EXPECT_GT(number(named.at("validation/1/recording").wave.abs().max()), 0.3);
  // The second time the decoder alone has changed.
  EXPECT_EQ(stage->samples(*learner).size(), samples.size());
  run.config.observe.sample_count = 0;
  EXPECT_TRUE(run.open()->samples(*learner).empty());
}

TEST(DecoderStage, ExportsTheVocoderFoldedAndLeavesTheRest) {
  DecoderRun run;
  const auto stage = run.open();
  auto learner = stage->make_learner(this_cpu());
  NamedTensors weights;
  for (const Phase& phase : learner->phases())
    for (const TrainedTensor& trained : phase.tensors)
      weights.emplace_back(trained.name, *trained.tensor * 1.25);
  const TestFolder folder;
  stage->export_model(weights, {}, folder.path().string());

  const XttsFolder written = XttsFolder::open(folder.path());
  const Xtts loaded = Xtts::load(written);
  const auto file = written.open_weights();
  for (const TensorEntry& entry : file.file->entries())
    EXPECT_FALSE(contains(entry.name, "discriminators") || contains(entry.name, "original0"))
        << entry.name;
  // The scale of a normed weight grew, its direction did not turn.
  const Vocoder& before = run.parts.xtts.vocoder;
  EXPECT_LT(
      largest_difference(loaded.vocoder.stages[1].up.weight, before.stages[1].up.weight * 1.25),
      1e-6);
  EXPECT_LT(largest_difference(loaded.vocoder.pre.weight, before.pre.weight * 1.25), 1e-6);
  EXPECT_TRUE(same_bits(loaded.gpt.audio_head.weight, run.parts.xtts.gpt.audio_head.weight));
  EXPECT_TRUE(trained_stages(folder.path()).contains("decoder"));
}

TEST(DecoderStage, ExportSaysWhatIsMissing) {
  DecoderRun run;
  const auto stage = run.open();
  const TestFolder folder;
  const Thrown thrown = thrown_by([&] { stage->export_model({}, {}, (folder / "out").string()); });
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_TRUE(contains(thrown.sentence, "the trained decoder")) << thrown.sentence;
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

}  // namespace tandem::tests
