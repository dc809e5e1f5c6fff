// Rows of `generation`, `paths` and `observe`.
#include "config/schema_rows.h"

namespace tandem {

std::vector<Setting> generation_settings() {
  // The sampling values have a second home in users' scripts: `model.model.max_new_tokens=512`.
  const auto row_of = [](auto member, const char* key) {
    return row(&Config::generation, member, key).readers(read_by_generate);
  };
  using G = GenerationConfig;
  return {
      row_of(&G::batch_size, "generation.batch_size")
          .range(1, 1e6)
          .auto_is_null()
          .help("Clips at once over all GPUs; null or `auto`: chosen from free memory."),
      row_of(&G::temperature, "generation.temperature")
          .range(0, 100)
          .flag("--temperature")
          .aliases({"model.model.temperature"})
          .help("Spread of the sampling; lower is safer."),
      row_of(&G::top_k, "generation.top_k")
          .range(0, 65536)
          .flag("--top-k")
          .aliases({"model.model.top_k"})
          .help("Tokens to sample from; 0: all."),
      row_of(&G::top_p, "generation.top_p")
          .range(0, 1)
          .flag("--top-p")
          .aliases({"model.model.top_p"})
          .help("Share of probability to sample from."),
      row_of(&G::guidance_scale, "generation.guidance_scale")
          .range(0, 100)
          .flag("--guidance-scale")
          .aliases({"model.model.guidance_scale"})
          .help("How strictly the caption is followed."),
      row_of(&G::max_new_tokens, "generation.max_new_tokens")
          .range(1, 100000)
          .flag("--max-new-tokens")
          .aliases({"model.model.max_new_tokens"})
          .help("Length of a clip in tokens, about 50 a second."),
      row_of(&G::seed, "generation.seed")
          .at_least(0)
          .aliases({"model.model.seed"})
          .help("Start of every clip's random sequence."),
      row_of(&G::use_cache, "generation.use_cache")
          .aliases({"model.model.use_cache"})
          .help("Keep keys and values of earlier tokens; false is slow."),
      row_of(&G::split, "generation.split")
          .choices({"queue", "batch"})
          .help("How GPUs share the work: each pulls its own batches, or one batch is split."),
      row_of(&G::do_sample, "generation.do_sample")
          .aliases({"model.model.do_sample"})
          .help("Draw tokens; false: always the likeliest."),
      row_of(&G::kv_cache, "generation.kv_cache")
          .choices({"same", "int8"})
          .help("How keys and values are kept: as precisely as the products, or in 8 bits."),
      row_of(&G::window_tokens, "generation.window_tokens")
          .range(8, 100000)
          .help("Longer clips are made in windows of so many tokens."),
      row_of(&G::kept_tokens, "generation.kept_tokens")
          .range(1, 100000)
          .help("Frames of the window before with which a window begins."),
      row_of(&G::format, "generation.format")
          .choices({"wav", "wav16", "flac"})
          .help("Files of sound: float32 WAV, 16-bit WAV or FLAC."),
      row_of(&G::writers, "generation.writers").range(1, 256).help("Threads that write the clips."),
  };
}

std::vector<Setting> paths_settings() {
  const auto row_of = [](auto member, const char* key) { return row(&Config::paths, member, key); };
  return {
      row_of(&PathsConfig::checkpoint_dir, "paths.checkpoint_dir")
          .flag("--checkpoint-dir")
          .readers(read_by_train)
          .help("Folder of the run; empty: `runs/<time>`."),
      row_of(&PathsConfig::data_dir, "paths.data_dir")
          .readers(read_by_generate)
          .help("Folder under which outputs are written."),
      row_of(&PathsConfig::model_dir, "paths.model_dir")
          .readers(read_by_generate)
          .help("Folder that holds model folders."),
      row_of(&PathsConfig::run_id, "paths.run_id")
          .readers(read_by_generate)
          .help("Name of a generation run's folder; null: its time."),
  };
}

std::vector<Setting> observe_settings() {
  const auto row_of = [](auto member, const char* key) {
    return row(&Config::observe, member, key).readers(read_by_train);
  };
  return {
      row_of(&ObserveConfig::log_step, "observe.log_step")
          .range(1, 1e12)
          .help("Steps between lines when standard error is no terminal."),
      row_of(&ObserveConfig::memory_step, "observe.memory_step")
          .range(1, 1e12)
          .help("Steps between memory lines under memory isolation."),
      row_of(&ObserveConfig::sample_step, "observe.sample_step")
          .range(0, 1e12)
          .help("Steps between samples to look at and listen to; 0: only at the end."),
      row_of(&ObserveConfig::sample_text, "observe.sample_text")
          .help("File of sentences to speak, one a line; empty: texts of validation clips."),
      row_of(&ObserveConfig::sample_count, "observe.sample_count")
          .range(0, 1000)
          .help("Sentences to speak, or clips to show."),
      row_of(&ObserveConfig::tensorboard, "observe.tensorboard")
          .help("Writes event files for TensorBoard."),
      row_of(&ObserveConfig::metrics_port, "observe.metrics_port")
          .range(1, 65535)
          .flag("--metrics-port")
          .readers(read_by_train | read_by_generate)
          .help("Port on the loopback address where Prometheus reads figures; null: none."),
  };
}

}  // namespace tandem
