// What `tandem generate` was asked for, read and checked before a model is loaded.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "config/resolve.h"
#include "generate/captions.h"
#include "generate/music_engine.h"
#include "models/musicgen/musicgen_config.h"
#include "tandem/devices.h"

namespace tandem {

struct GenerateRequest {
  Config config;
  std::string settings_yaml;             // all of them resolved, for the run's folder
  std::string model_folder, model_name;  // the name is that of the output folder
  std::vector<std::string> prompts;      // else config.data.captions_file
  std::string audio_prompt;              // a file every clip goes on from
  std::string output_file;               // of one prompt; empty: a folder
  std::string output_folder;             // empty: <data_dir>/<model>/<run_id>
  std::optional<double> seconds;         // instead of config.generation.max_new_tokens
  int64_t shard = 0, shards = 1;
  bool fresh = false, plan = false, json = false;
  std::vector<std::string> notes;  // sentences for the user
};

std::vector<Option> generate_options();

// Flags that are no settings of their own become overrides before all others: -b, --seed,
// --visible-gpus. `batch_size` and `data.batch_size` mean generation.batch_size here.
Resolved resolve_generate_settings(const Arguments& arguments);

// Throws Error(usage), Error(config), Error(io).
GenerateRequest generate_request(const Arguments& arguments, const Resolved& resolved);
DeviceRequest generate_device_request(const Arguments& arguments, const Config& config);

// "i/n" from 0/n to (n-1)/n, or "auto": this task of SLURM's job array, all where there is none.
struct ShardChoice {
  int64_t shard = 0, shards = 1;
  std::string run_id;  // that all tasks of the array share; empty: not of an array
  std::string note;
};
ShardChoice parse_shard(const std::string& text);

// Columns, share and files of captions as the settings say; or one row a prompt.
Captions captions_of(const GenerateRequest& request);

// Sampling, length and windows. Throws Error(config) for windows the model has no positions for.
MusicOptions music_options(const GenerateRequest& request, const MusicgenConfig& model);
// "fp32", "bf16", "fp16" or "auto".
MusicEngineOptions music_engine_options(const Config& config);

}  // namespace tandem
