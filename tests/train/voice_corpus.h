// A made corpus to train a tiny voice on.
#pragma once

#include <string>

#include "data/feed/speech_corpus_folder.h"
#include "support/tiny_xtts.h"
#include "tandem/config.h"

namespace tandem {

// Clips of tones with texts, and the vocabulary beside them.
struct VoiceCorpus : tests::SpeechFolder {
  VoiceCorpus() : SpeechFolder(16) { folder.write("vocab.json", tiny_vocabulary()); }
  Config config(const std::string& stage, int64_t steps, const std::string& run) const {
    Config made;
    made.data = settings();
    made.data.train_data = index;
    made.data.language = "en";
    made.data.batch_size = 4;
    made.data.buckets = 2;
    made.data.validation_share = 0.2;
    made.data.buffer_size = 6;
    made.data.model_start_delay = 0.2;
    made.training.stage = stage;
    made.training.max_steps = steps;
    made.training.stage_steps = "4,4,2";
    made.training.save_step = 2;
    made.training.val_step = 2;
    made.training.check_replicas = 1;
    made.training.segment_codes = 8;
    made.training.dvae_codes = 96;
    made.observe.sample_step = 0;
    made.observe.sample_count = 1;
    made.paths.checkpoint_dir = (folder / run).string();
    return made;
  }
  // Of a GPT on top of the run "start".
  Config gpt_config(int64_t steps, const std::string& run) const {
    Config made = config("gpt", steps, run);
    made.model.pretrained = (folder / "start/model").string();
    return made;
  }
  // Of a decoder on top of the run "voice".
  Config decoder_config(int64_t steps, const std::string& run) const {
    Config made = config("decoder", steps, run);
    made.model.pretrained = (folder / "voice/model").string();
    return made;
  }
};

}  // namespace tandem
