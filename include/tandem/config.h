// Settings of Tandem: plain aggregates, one a section, with their defaults. Three equal ways to
// fill them:
//
//   Config c{.training = {.multi_gpu = true}};                          // C++
//   Config c = Config::from_overrides({"multi_gpu=true"});              // flat or dotted names
//   Config c = Config::from_yaml("config.yaml");                        // a file
//
// The table that binds names, ranges, flags and help to these members is src/config/schema.cpp; a
// member without a row there does not exist for users. Nothing in a Config is checked until it
// passes that table
// (`validate`), which from_overrides and from_yaml do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

struct ModelConfig {
  std::string name = "musicgen-small";  // text to audio: a folder in paths.model_dir
  std::string size = "tiny";            // tiny | small | normal | big
  std::string dtype = "auto";  // auto | float32 | bfloat16 | float16: weights when generating
  std::optional<std::string> pretrained = {};  // a model folder training starts from
};

struct DataConfig {
  std::optional<std::string> train_data = {};
  std::optional<std::string> val_data = {};
  std::optional<std::string> dataset = {};  // public name of the captions, for the records of a run
  std::optional<std::string> captions_file = {};  // CSV
  std::string id_column = "id";
  std::string text_column = "caption";
  std::string audio_prompt_column = "";  // of files to go on from; empty: none
  double subset_size = 1.0;              // share of the captions, drawn by subset_seed
  int64_t subset_seed = 42;
  int64_t max_sequence_length = 255;  // ids of a caption; longer ones are cut
  int64_t batch_size = 16;            // clips (bytes stage: sequences) a step, over all replicas
  int64_t num_workers = 16;
  int64_t buffer_size = 50;  // batches in the one queue before the model
  // Text, so that a wrong index is reported in the contract's words.
  std::optional<std::string> data_gpu = {};
  std::optional<std::string> model_gpu = {};  // "1" or "1,2,3"
  double model_start_delay = 2.0;             // seconds
  bool use_native_loading = true;
  bool prefetch_to_gpu = true;
  bool enhanced_gpu_prefetch = true;
  bool optimize_cpu_gpu_overlap = true;
  bool pin_memory = true;
  int64_t prefetch_factor = 2;
  std::optional<int64_t> decoded_memory = {};  // MB; none: a quarter of what is free
  // Speech.
  std::optional<std::string> tokenizer = {};  // none: vocab.json beside the index
  std::optional<std::string> language = {};   // of clips whose language is not known
  int64_t sample_rate = 22050;
  std::string mel = "default";
  int64_t buckets = 8;                       // shapes of batches at most
  std::optional<double> batch_seconds = {};  // a batch's size by time instead of clips
  std::optional<double> trim_top_db = {};    // silence at both ends is cut
  std::optional<double> target_loudness_lufs = {};
  std::optional<double> noise_snr_db = {};
  double pitch_shift_semitones = 0;
  double start_jitter_ms = 0;  // clips begin up to so much later, another place each epoch
  double warn_bad_share = 0.05;
  double max_bad_share = 0.20;
  double validation_share = 0.01;  // of the training data, where no val_data is given
};

struct TrainingConfig {
  std::string stage = "bytes";
  bool multi_gpu = false;  // mirrored replicas when two or more GPUs are visible
  std::optional<std::string> visible_gpus = {};  // "0", "0,1", UUIDs; none: all
  int64_t epochs = 100;
  std::optional<int64_t> max_steps = {};
  std::optional<double> max_minutes = {};  // the run ends then, as if its steps were done
  std::string stage_steps = "";  // stage all: steps of dvae, gpt and decoder: "3000,9000,6000"
  std::optional<double> learning_rate = {};  // none: what fits the stage
  std::string schedule = "constant";         // constant | cosine | restarts | noam | multistep
  int64_t warmup_steps = 0;
  double final_learning_rate = 0.1;  // cosine, restarts: share of learning_rate at the end
  int64_t restart_steps = 1000;      // restarts: length of the first cycle; each is twice as long
  std::string milestones = "900000,2700000,5400000";  // multistep
  double milestone_factor = 0.5;
  double weight_decay = 0.01;
  double beta1 = 0.9, beta2 = 0.96;
  double gradient_clip = 1.0;  // largest norm; 0: none
  double ema_decay = 0;        // moving average of the weights, saved beside them; 0: none
  double dropout = 0.1;        // of the GPT: embeddings and both branches of every layer
  double text_loss_weight = 0.01;
  std::string conditioning_clip = "other";  // other | same: whose slice tells the voice
  bool mask_conditioning = true;  // codes of a clip's own slice that tells the voice: not learned
  // Share of the codes the GPT reads that are replaced by others; none: what fits the start.
  std::optional<double> code_noise = {};
  double recall_weight = 0;   // GPT: of telling the code that was read from its latent
  bool fp8_products = false;  // GPT in bf16 on Hopper: products of both passes in 8-bit floats
  bool recompute = false;     // activations are computed again instead of kept
  int64_t lora_rank = 0;      // GPT: train low-rank additions instead of the weights; 0: no
  double lora_alpha = 16;
  std::string compat = "none";      // none | coqui
  int64_t early_stop_patience = 0;  // validations without a better loss; 0: never
  int64_t max_bad_steps = 10;       // steps skipped one after another until the run stops
  double spike_factor = 20;         // a gradient norm so many times the usual is skipped; 0: never
  int64_t dvae_codes = 0;           // codes the DVAE learns with before the selection; 0: 8 times
  double codebook_decay = 0.99;
  double commitment = 0.25;
  int64_t segment_codes = 32;     // decoder: codes of one window of sound
  double own_codes_share = 0.25;  // decoder: clips spoken from the model's own codes
  double feature_loss_weight = 2, mel_loss_weight = 45, speaker_loss_weight = 1;
  double spectral_loss_weight = 0;
  int64_t discriminator_start = 0;  // decoder: first step with discriminators
  int64_t gradient_accumulation_steps = 1;
  int64_t seed = 0;
  bool deterministic = false;
  std::string precision = "fp32";  // fp32 | tf32 | bf16 | fp16
  int64_t save_step = 100;
  int64_t val_step = 100;
  int64_t keep_checkpoints = 3;
  std::string optimization_level = "basic";  // basic | enhanced | experimental | plateau_breaker
  bool enable_graph_mode = true;
  bool enable_kernel_fusion = true;
  bool enable_eager_debug = false;
  bool enable_memory_isolation = false;
  std::optional<int64_t> data_gpu_memory = {};  // MB, hard limits under memory isolation
  std::optional<int64_t> model_gpu_memory = {};
  int64_t check_replicas = 100;      // steps between proofs that replicas are identical; 0: never
  double collective_timeout = 60.0;  // seconds until a missing rank stops the run
};

struct GenerationConfig {
  // Clips at once over all GPUs; none: chosen from free memory.
  std::optional<int64_t> batch_size = {};
  double temperature = 1.0;
  int64_t top_k = 50;
  double top_p = 0.95;
  double guidance_scale = 3.0;
  int64_t max_new_tokens = 255;
  int64_t seed = 0;
  bool use_cache = true;
  std::string split = "queue";    // queue | batch
  bool do_sample = true;          // false: always the likeliest token
  std::string kv_cache = "same";  // same | int8: keys and values of earlier tokens
  // Clips of more tokens are made in windows that begin with the last of the window before.
  int64_t window_tokens = 1503, kept_tokens = 600;
  std::string format = "wav";  // wav (float32) | wav16 | flac
  int64_t writers = 2;         // threads that write clips
};

struct PathsConfig {
  std::string checkpoint_dir = "";  // empty: runs/<time>
  std::string data_dir = "data";
  std::string model_dir = "models";
  std::optional<std::string> run_id = {};
};

struct ObserveConfig {
  int64_t log_step = 10;         // steps between lines when standard error is no terminal
  int64_t memory_step = 100;     // steps between memory lines under memory isolation
  int64_t sample_step = 1000;    // steps between samples to look at and to listen to; 0: at the end
  std::string sample_text = "";  // sentences to speak, one a line of this file; empty: some of the
                                 // validation clips
  int64_t sample_count = 4;
  bool tensorboard = true;
  std::optional<int64_t> metrics_port = {};  // Prometheus text is served there; none: not
};

struct Config {
  ModelConfig model = {};
  DataConfig data = {};
  TrainingConfig training = {};
  GenerationConfig generation = {};
  PathsConfig paths = {};
  ObserveConfig observe = {};

  // Both throw Error(config) with the place (`file:line` or the override itself) and what was
  // expected.
  static Config from_overrides(const std::vector<std::string>& overrides);
  static Config from_yaml(const std::string& path);
};

}  // namespace tandem
