// Whole runs of the three stages of a voice, on simulated devices.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <map>
#include <regex>

#include "checkpoint/run_folder.h"
#include "device/registry.h"
#include "device/simulated.h"
#include "models/xtts/xtts.h"
#include "support/captured.h"
#include "tandem/trainer.h"
#include "text/tokenizer.h"
#include "train/plan.h"
#include "train/stages/gpt_stage.h"
#include "train/voice_corpus.h"
#include "train/voice_parts.h"
#include "util/atomic_file.h"

namespace tandem {
namespace {

struct Seen {
  std::map<int64_t, double> train, validation;
  std::vector<std::string> samples;
};

TrainResult run(const Config& config, Seen* seen = nullptr) {
  TrainHooks hooks;
  hooks.on_step = [&](const StepReport& report) {
    if (seen) (report.validation ? seen->validation : seen->train)[report.step] = report.loss;
  };
  if (seen)
    hooks.on_sample = [&](const SampleReport& report) { seen->samples.push_back(report.name); };
  TrainResult result;
  std::exception_ptr failure;
  capture([&] {
    try {
      result = train(config, hooks);
    } catch (...) {
      failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
  return result;
}

// Of low-rank additions to the GPT of a run "voice", made here.
Config lora_config(const VoiceCorpus& corpus, int64_t steps, const std::string& name) {
  if (!std::filesystem::exists(corpus.folder / "voice")) run(corpus.gpt_config(2, "voice"));
  Config made = corpus.config("gpt", steps, name);
  made.model.pretrained = (corpus.folder / "voice/model").string();
  made.training.lora_rank = 2;
  return made;
}

// What `body` says in a process of its own, since devices are configured once a process.
template <class Body>
void in_own_process(const Body& body) {
  if (fork() == 0) {
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  wait(&status);
  EXPECT_EQ(status, 0);
}

// Of the last checkpoint.
int64_t trained_numbers(const std::string& folder) {
  int64_t count = 0;
  const Checkpoint saved = RunFolder(folder).load_latest().value();
  for (const auto& [name, tensor] : saved.weights) count += tensor.numel();
  return count;
}

TEST(VoiceTraining, AllStagesMakeAFolderThatSpeaks) {
  const VoiceCorpus corpus;
  simulate_devices(1);
  std::vector<std::string> stages;
  std::string folder;
  for (const Config& stage : runs_of(corpus.config("all", 4, "run"), false)) {
    Seen seen;
    const TrainResult result = run(stage, &seen);
    EXPECT_FALSE(seen.train.empty());
    EXPECT_FALSE(seen.validation.empty());
    EXPECT_FALSE(seen.samples.empty()) << stage.training.stage;
    for (const auto& [step, loss] : seen.train) EXPECT_TRUE(std::isfinite(loss)) << step;
    EXPECT_EQ(make_plan(stage).parameters, trained_numbers(result.folder)) << stage.training.stage;
    stages.push_back(stage.training.stage);
    folder = result.folder + "/model";
  }
  EXPECT_EQ(stages, (std::vector<std::string>{"dvae", "gpt", "decoder"}));
  const Xtts model = Xtts::load(XttsFolder::open(folder));
  EXPECT_EQ(model.gpt.size.audio_tokens, 66);
  EXPECT_EQ(trained_stages(folder), (std::set<std::string>{"decoder", "dvae", "gpt"}));
  EXPECT_EQ(model.config.sampling.repetition_penalty, 1.2);
  EXPECT_TRUE(model.config.keeps_endings);
  EXPECT_GT(model.config.longest_text, 3) << "characters of the corpus's texts";
  EXPECT_LT(model.config.longest_text, 200);
  const Voice voice = make_voice(model, {corpus.path(3)}, model.config.voice);
  EXPECT_TRUE(at::isfinite(voice.conditioning).all().item<bool>());
}

TEST(VoiceTraining, PlansTheAdditionsAloneOfALowRankRun) {
  const VoiceCorpus corpus;
  simulate_devices(1);
  run(corpus.config("dvae", 2, "start"));
  Config config = corpus.gpt_config(2, "gpt");
  const TrainPlan whole = make_plan(config);
  config = lora_config(corpus, 2, "lora");
  const TrainPlan plan = make_plan(config);
  EXPECT_EQ(plan.frozen, whole.parameters);
  EXPECT_EQ(plan.parameters, trained_numbers(run(config).folder));
  const HeldBytes planned = planned_bytes(plan, config.training);
  const auto bytes = static_cast<uint64_t>(plan.parameters);
  EXPECT_EQ(planned, (HeldBytes{{"weights", 4 * bytes},
                                {"frozen weights", 4 * static_cast<uint64_t>(plan.frozen)},
                                {"gradients", 4 * bytes},
                                {"moments", 8 * bytes}}));
}

TEST(VoiceTraining, PenalisesRepetitionsLittleInANewVoiceAndAsItAsksInATrainedOne) {
  const VoiceCorpus corpus;
  Config config = corpus.config("dvae", 2, "run");
  EXPECT_EQ(voice_config(config).sampling.repetition_penalty, 1.2);
  VoiceParts parts = open_voice_parts(config);
  EXPECT_EQ(parts.xtts.config.sampling.repetition_penalty, 1.2);
  parts.xtts.mel_stats = at::ones({80});
  parts.dvae.reset();
  parts.xtts.config.sampling.repetition_penalty = 3;
  write_voice_parts(parts, corpus.folder / "given");
  config.model.pretrained = (corpus.folder / "given").string();
  EXPECT_EQ(voice_config(config).sampling.repetition_penalty, 3);
  write_voice_parts(open_voice_parts(config), corpus.folder / "again");
  EXPECT_EQ(XttsFolder::open(corpus.folder / "again").config.sampling.repetition_penalty, 3);
}

TEST(VoiceTraining, SaysWhatTheGptReadsAndWhereTheVoiceComesFrom) {
  const VoiceCorpus corpus;
  simulate_devices(1);
  run(corpus.config("dvae", 2, "start"));
  Config config = corpus.gpt_config(2, "gpt");
  LogicalDevice& cpu = DeviceRegistry::get().cpu();
  const auto fact = [&](const std::string& name) -> std::string {
    const GptStage stage(config, cpu, "");
    for (const auto& [key, value] : stage.facts())
      if (key == name) return value;
    return "nothing";
  };
  EXPECT_EQ(fact("codes it reads"), "10 % replaced by others") << "its GPT was not trained yet";
  EXPECT_EQ(fact("voice from"), "another clip of the speaker in the batch");
  EXPECT_EQ(fact("decoded sound"), "none: every clip is plain WAV");
  config.data.use_native_loading = false;
  EXPECT_TRUE(fact("decoded sound").ends_with(" at most kept in memory")) << fact("decoded sound");
  config.data.decoded_memory = 1;
  EXPECT_TRUE(fact("decoded sound").starts_with("1.0 MiB at most kept in memory of "))
      << fact("decoded sound");
  config.data.decoded_memory = 0;
  EXPECT_EQ(fact("decoded sound"), "not kept: every epoch decodes");
  config.data.use_native_loading = true;
  config.training.compat = "coqui";
  EXPECT_EQ(fact("codes it reads"), "the clips'");
  EXPECT_EQ(fact("voice from"), "a slice of the clip");
  config.training.compat = "none";
  run(config);
  config.model.pretrained = (corpus.folder / "gpt/model").string();
  EXPECT_EQ(fact("codes it reads"), "the clips'") << "one that was trained is tuned";
}

TEST(VoiceTraining, RefusesEightBitProductsBeforeAnythingIsWritten) {
  const VoiceCorpus corpus;
  simulate_devices(1);
  run(corpus.config("dvae", 2, "start"));
  Config config = corpus.gpt_config(2, "gpt");
  config.training.fp8_products = true;
  std::string sentence;
  try {
    run(config);
  } catch (const Error& error) {
    sentence = error.kind() == ErrorKind::config ? error.what() : "of another kind";
  }
  EXPECT_TRUE(sentence.starts_with("training.fp8_products=true is for a Hopper GPU")) << sentence;
  EXPECT_FALSE(std::filesystem::exists(corpus.folder / "gpt"));
}

TEST(VoiceTraining, WritesTheModelOfARunThatWasKilledBeforeItCould) {
  const VoiceCorpus corpus;
  simulate_devices(1);
  const Config config = corpus.config("dvae", 2, "start");
  run(config);
  const auto folder = corpus.folder / "start";
  const std::string whole = read_file(folder / "model/dvae.safetensors");
  std::filesystem::remove(folder / "model/dvae.safetensors");  // half of it was there
  write_file_atomically(
      folder / "latest/state.json",
      std::regex_replace(read_file(folder / "latest/state.json"), std::regex("\"finished\": true"),
                         "\"finished\": false"));
  EXPECT_TRUE(run(config).already_finished);
  EXPECT_EQ(read_file(folder / "model/dvae.safetensors"), whole);
  EXPECT_TRUE(RunFolder(folder).latest_state()->finished);
}

TEST(VoiceTraining, DoesNotGoOnWithCodesOfAnotherDvae) {
  const VoiceCorpus corpus;
  simulate_devices(1);
  run(corpus.config("dvae", 2, "start"));
  run(corpus.gpt_config(2, "gpt"));
  Config other = corpus.config("dvae", 2, "other");
  other.training.seed = 99;
  run(other);
  std::filesystem::copy_file(corpus.folder / "other/model/dvae.safetensors",
                             corpus.folder / "start/model/dvae.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  const Error error = error_of([&] { run(corpus.gpt_config(4, "gpt")); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_NE(std::string(error.what()).find(" dvae="), std::string::npos) << error.what();
}

TEST(VoiceTraining, EagerDebuggingLetsHealthyRunsPass) {
  const VoiceCorpus corpus;
  for (const bool deterministic : {false, true}) {
    in_own_process([&] {
      simulate_devices(1);
      const std::string name = deterministic ? "same" : "start";
      Config config = corpus.config("dvae", 3, name);
      config.training.enable_eager_debug = true;
      config.training.deterministic = deterministic;
      run(config);
      Config gpt = config;
      gpt.training.stage = "gpt";
      gpt.model.pretrained = (corpus.folder / name / "model").string();
      gpt.paths.checkpoint_dir = (corpus.folder / (name + " gpt")).string();
      run(gpt);
    });
  }
}

TEST(VoiceTraining, RecomputingChangesNothing) {
  const VoiceCorpus corpus;
  simulate_devices(1);
  run(corpus.config("dvae", 2, "start"));
  for (const int64_t rank : {0, 2}) {
    Seen kept, again;
    const std::string name = "kept" + std::to_string(rank);
    Config config = rank > 0 ? lora_config(corpus, 3, name) : corpus.gpt_config(3, name);
    run(config, &kept);
    config.paths.checkpoint_dir = (corpus.folder / ("again" + std::to_string(rank))).string();
    config.training.recompute = true;
    run(config, &again);
    EXPECT_EQ(kept.train, again.train) << rank;
  }
}

TEST(VoiceTraining, LowRankAdditionsAreSavedApartAndMerged) {
  const VoiceCorpus corpus;
  simulate_devices(1);
  run(corpus.config("dvae", 2, "start"));
  Config config = lora_config(corpus, 3, "lora");
  config.training.learning_rate = 1e-2;
  run(config);
  const auto folder = corpus.folder / "lora/model";
  EXPECT_TRUE(std::filesystem::exists(folder / "lora.safetensors"));
  const Xtts before = Xtts::load(XttsFolder::open(*config.model.pretrained)),
             after = Xtts::load(XttsFolder::open(folder));
  EXPECT_FALSE(at::equal(before.gpt.blocks[0].qkv_weight, after.gpt.blocks[0].qkv_weight));
  EXPECT_TRUE(at::equal(before.gpt.text_embedding, after.gpt.text_embedding));
}

TEST(VoiceTraining, LearnsAVocabularyWhereThereIsNone) {
  const VoiceCorpus corpus;
  simulate_devices(1);
  const auto dataset = corpus.folder.path();
  const auto vocabulary = dataset / "vocab.json", index = dataset / "tandem.index";
  Config config = corpus.config("all", 2, "run");
  config.data.train_data = dataset.string();
  const auto runs = [&] { capture([&] { runs_of(config, false); }); };
  const auto tokens = [&] { return load_tokenizer(vocabulary.string())->vocabulary_size(); };
  const std::string chosen = read_file(index);

  const auto refused = [&] { return error_of([&] { runs_of(config, false); }).kind(); };
  std::filesystem::remove(vocabulary);
  config.training.dvae_codes = 3;
  EXPECT_EQ(refused(), ErrorKind::config);
  config.training.dvae_codes = 96;
  config.data.batch_size = 0;
  EXPECT_EQ(refused(), ErrorKind::config);
  config.data.batch_size = 4;
  EXPECT_FALSE(std::filesystem::exists(vocabulary)) << "nothing is made for a run that cannot be";

  runs();
  EXPECT_EQ(read_file(index), chosen) << "an index that is there is somebody's choice of clips";
  const int64_t from_index = tokens();
  EXPECT_GT(from_index, 20);

  std::filesystem::remove(vocabulary);
  std::filesystem::remove(index);
  runs();
  EXPECT_EQ(tokens(), from_index) << "prepared now, of the same texts";
  EXPECT_TRUE(std::filesystem::exists(index));
}

TEST(VoiceTraining, SaysWhatIsMissingAndCreatesNothing) {
  const VoiceCorpus corpus;
  simulate_devices(1);
  Config config = corpus.config("gpt", 2, "run");
  EXPECT_STREQ(error_of([&] { run(config); }).what(),
               "the GPT learns the codes of a trained DVAE, and a new model has none");
  config = corpus.config("decoder", 2, "run");
  EXPECT_EQ(error_of([&] { run(config); }).kind(), ErrorKind::config);
  config = corpus.config("dvae", 2, "run");
  config.data.train_data = (corpus.folder / "nowhere").string();
  EXPECT_EQ(error_of([&] { run(config); }).kind(), ErrorKind::io);
  config = corpus.config("all", 2, "run");
  config.training.stage_steps = "1,2";
  EXPECT_EQ(error_of([&] { runs_of(config, false); }).kind(), ErrorKind::config);
  config = corpus.config("all", 2, "run");
  config.observe.sample_text = (corpus.folder / "none.txt").string();
  EXPECT_EQ(error_of([&] { runs_of(config, false); }).kind(), ErrorKind::io);
  run(corpus.config("dvae", 2, "start"));
  config = corpus.gpt_config(2, "run");
  config.observe.sample_text = (corpus.folder / "none.txt").string();
  const Error missing = error_of([&] { run(config); });
  EXPECT_EQ(missing.kind(), ErrorKind::io);
  EXPECT_TRUE(std::string(missing.what()).starts_with("observe.sample_text: cannot read `"))
      << missing.what();
  std::ofstream(config.observe.sample_text) << "\n \n";
  EXPECT_TRUE(std::string(error_of([&] { run(config); }).what()).ends_with("` has no sentence"));
  EXPECT_FALSE(std::filesystem::exists(corpus.folder / "run"));
}

TEST(VoiceTraining, SpeaksTheSentencesOfAFile) {
  const VoiceCorpus corpus;
  simulate_devices(1);
  run(corpus.config("dvae", 2, "start"));
  Config config = corpus.gpt_config(2, "run");
  config.observe.sample_text = (corpus.folder / "sentences.txt").string();
  config.observe.sample_count = 2;
  std::ofstream(config.observe.sample_text) << "One two.\n\n  Three four.  \nFive.\n";
  std::vector<std::string> spoken;
  TrainHooks hooks;
  hooks.on_sample = [&](const SampleReport& report) { spoken.push_back(report.text); };
  capture([&] { train(config, hooks); });
  EXPECT_EQ(spoken, (std::vector<std::string>{"One two.", "Three four."}));
}

}  // namespace
}  // namespace tandem
