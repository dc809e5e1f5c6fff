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
};

struct DataConfig {
  std::optional<std::string> train_data = {};
  std::optional<std::string> val_data = {};
  std::optional<std::string> dataset = {};  // public name of the captions, for the records of a run
  std::optional<std::string> captions_file = {};  // CSV
  std::string id_column = "id";
  std::string text_column = "caption";
  int64_t batch_size = 16;  // clips (bytes stage: sequences) a step, over all replicas
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
  double warn_bad_share = 0.05;
  double max_bad_share = 0.20;
};

struct TrainingConfig {
  std::string stage = "bytes";
  bool multi_gpu = false;  // mirrored replicas when two or more GPUs are visible
  std::optional<std::string> visible_gpus = {};  // "0", "0,1", UUIDs; none: all
  int64_t epochs = 100;
  std::optional<int64_t> max_steps = {};
  double learning_rate = 1e-3;
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
  std::string split = "queue";  // queue | batch
};

struct PathsConfig {
  std::string checkpoint_dir = "";  // empty: runs/<time>
  std::string data_dir = "data";
  std::string model_dir = "models";
  std::optional<std::string> run_id = {};
};

struct ObserveConfig {
  int64_t log_step = 10;      // steps between lines when standard error is no terminal
  int64_t memory_step = 100;  // steps between memory lines under memory isolation
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
