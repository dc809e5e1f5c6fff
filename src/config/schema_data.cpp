// Rows of `model` and `data`.
#include "config/schema_rows.h"

namespace tandem {

std::vector<Setting> model_settings() {
  const auto row_of = [](auto member, const char* key) { return row(&Config::model, member, key); };
  return {
      row_of(&ModelConfig::name, "model.name")
          .readers(read_by_generate)
          .help("Text-to-audio model, a folder in paths.model_dir; also names the output folder."),
      row_of(&ModelConfig::size, "model.size")
          .choices({"tiny", "small", "normal", "big"})
          .flag("--model-size")
          .readers(read_by_train)
          .help("Size of a model that is trained from its beginning."),
      row_of(&ModelConfig::dtype, "model.dtype")
          .choices({"auto", "float32", "bfloat16", "float16"})
          .aliases({"model.model.dtype"})
          .readers(read_by_generate)
          .help("Type of the weights when generating."),
      row_of(&ModelConfig::pretrained, "model.pretrained")
          .flag("--pretrained")
          .readers(read_by_train)
          .help("Model folder that training starts from; null: a new model of model.size."),
  };
}

std::vector<Setting> data_settings() {
  const auto row_of = [](auto member, const char* key) { return row(&Config::data, member, key); };
  return {
      row_of(&DataConfig::train_data, "data.train_data")
          .flag("--train-data")
          .readers(read_by_train)
          .help("Folder or index of the training data."),
      row_of(&DataConfig::val_data, "data.val_data")
          .flag("--val-data")
          .readers(read_by_train)
          .help("Folder or index of the validation data; null: data.validation_share of the "
                "training data."),
      row_of(&DataConfig::dataset, "data.dataset")
          .aliases({"data.dataset_name"})
          .readers(read_by_generate)
          .help("Public name of the caption dataset."),
      row_of(&DataConfig::captions_file, "data.captions_file")
          .flag("--captions")
          .readers(read_by_generate)
          .help("Captions to turn into audio: csv, tsv, jsonl or txt."),
      row_of(&DataConfig::id_column, "data.id_column")
          .readers(read_by_generate)
          .help("Column of the clip's id."),
      row_of(&DataConfig::text_column, "data.text_column")
          .aliases({"data.caption_column"})
          .readers(read_by_generate)
          .help("Column of the caption."),
      row_of(&DataConfig::audio_prompt_column, "data.audio_prompt_column")
          .readers(read_by_generate)
          .help("Column of a sound file the clip goes on from; empty: none."),
      row_of(&DataConfig::subset_size, "data.subset_size")
          .above(0, 1)
          .readers(read_by_generate)
          .help("Share of the captions to take, drawn by data.subset_seed."),
      row_of(&DataConfig::subset_seed, "data.subset_seed")
          .at_least(0)
          .readers(read_by_generate)
          .help("Which captions a share of them is."),
      row_of(&DataConfig::max_sequence_length, "data.max_sequence_length")
          .range(1, 2048)
          .readers(read_by_generate)
          .help("Ids of a caption at most; longer ones are cut."),
      row_of(&DataConfig::batch_size, "data.batch_size")
          .range(1, 1e6)
          .flag("--batch-size")
          .readers(read_by_train | read_by_bench)
          .help("Clips (bytes stage: sequences) a step, over all replicas."),
      row_of(&DataConfig::num_workers, "data.num_workers")
          .range(1, 1024)
          .flag("--num-workers")
          .aliases({"data.dataloader_num_workers"})
          .readers(read_by_train | read_by_bench | read_by_generate)
          .help("Threads that read and decode."),
      row_of(&DataConfig::buffer_size, "data.buffer_size")
          .range(1, 100000)
          .flag("--buffer-size")
          .aliases({"data.pipeline_buffer_size", "data.prefetch_buffer_size"})
          .readers(read_by_train | read_by_bench)
          .help("Batches in the one queue before the model."),
      row_of(&DataConfig::data_gpu, "data.data_gpu")
          .flag("--data-gpu")
          .readers(read_by_train | read_by_bench)
          .help("GPU that loads and preprocesses; needs data.model_gpu."),
      row_of(&DataConfig::model_gpu, "data.model_gpu")
          .flag("--model-gpu")
          .readers(read_by_train | read_by_bench)
          .help("GPU that trains, or a list (`1,2,3`); needs data.data_gpu."),
      row_of(&DataConfig::model_start_delay, "data.model_start_delay")
          .range(0, 3600)
          .flag("--model-start-delay")
          .aliases({"data.pipeline_start_delay"})
          .readers(read_by_train)
          .help("Seconds that training waits at most for a full buffer."),
      row_of(&DataConfig::use_native_loading, "data.use_native_loading")
          .old_names({"data.use_tf_native_loading"})
          .readers(read_by_train | read_by_bench)
          .help("Native reader; false: the general decoder for every file, slower, same result."),
      row_of(&DataConfig::prefetch_to_gpu, "data.prefetch_to_gpu")
          .readers(read_by_train | read_by_bench)
          .help("Batches wait in GPU memory instead of host memory."),
      row_of(&DataConfig::enhanced_gpu_prefetch, "data.enhanced_gpu_prefetch")
          .readers(read_by_train | read_by_bench)
          .help("The prefetch depth follows the measured jitter."),
      row_of(&DataConfig::optimize_cpu_gpu_overlap, "data.optimize_cpu_gpu_overlap")
          .readers(read_by_train | read_by_bench)
          .help("Copies and computation run on different streams."),
      row_of(&DataConfig::pin_memory, "data.pin_memory")
          .readers(read_by_train | read_by_bench | read_by_generate)
          .help("Page-locked host memory for copies."),
      row_of(&DataConfig::prefetch_factor, "data.prefetch_factor")
          .range(1, 1024)
          .readers(read_by_train | read_by_bench | read_by_generate)
          .help("Batches that each worker prepares ahead."),
      row_of(&DataConfig::decoded_memory, "data.decoded_memory")
          .range(0, 1e9)
          .readers(read_by_train | read_by_bench)
          .help("MB of decoded sound kept for later epochs, of files that are not plain WAV; null: "
                "a quarter of the free memory; 0: none."),
      row_of(&DataConfig::tokenizer, "data.tokenizer")
          .flag("--tokenizer")
          .readers(read_by_train | read_by_bench)
          .help("Vocabulary (Hugging Face JSON); null: vocab.json beside the index, where there is "
                "one."),
      row_of(&DataConfig::language, "data.language")
          .flag("--language")
          .readers(read_by_train | read_by_bench)
          .help("Language of clips whose language the corpus does not say."),
      row_of(&DataConfig::sample_rate, "data.sample_rate")
          .range(1000, 192000)
          .readers(read_by_bench | read_by_prepare)
          .help("Rate that all clips are brought to, in Hz."),
      row_of(&DataConfig::mel, "data.mel")
          .choices({"default", "xtts_dvae", "xtts_conditioning", "xtts_conditioning_v1",
                    "speaker_encoder"})
          .readers(read_by_bench | read_by_prepare)
          .help("Front end that makes the mels."),
      row_of(&DataConfig::buckets, "data.buckets")
          .range(1, 64)
          .readers(read_by_train | read_by_bench)
          .help("Shapes of batches at most: clips of like length share one."),
      row_of(&DataConfig::batch_seconds, "data.batch_seconds")
          .above(0, 1e6)
          .readers(read_by_train | read_by_bench)
          .help("Seconds of sound a batch; null: data.batch_size clips, whatever their length."),
      row_of(&DataConfig::trim_top_db, "data.trim_top_db")
          .above(0, 200)
          .readers(read_by_bench | read_by_prepare)
          .help("Silence this far below a clip's loudest part is cut off its ends; null: kept."),
      row_of(&DataConfig::target_loudness_lufs, "data.target_loudness_lufs")
          .range(-70, 0)
          .readers(read_by_bench | read_by_prepare)
          .help("Loudness every clip is brought to (BS.1770); null: as recorded."),
      row_of(&DataConfig::noise_snr_db, "data.noise_snr_db")
          .range(-20, 120)
          .readers(read_by_train | read_by_bench)
          .help("White noise this far below each clip; null: none."),
      row_of(&DataConfig::pitch_shift_semitones, "data.pitch_shift_semitones")
          .range(0, 24)
          .readers(read_by_train | read_by_bench)
          .help("Clips are shifted in pitch by up to this, up or down; 0: not."),
      row_of(&DataConfig::start_jitter_ms, "data.start_jitter_ms")
          .range(0, 1000)
          .readers(read_by_train | read_by_bench)
          .help(
              "Clips begin up to so many milliseconds later, at another place each epoch, so that "
              "they are cut into other codes; 0: not."),
      row_of(&DataConfig::warn_bad_share, "data.warn_bad_share")
          .range(0, 1)
          .readers(read_by_train | read_by_bench)
          .help("Share of clips that cannot be used at which a warning comes."),
      row_of(&DataConfig::max_bad_share, "data.max_bad_share")
          .range(0, 1)
          .readers(read_by_train | read_by_bench)
          .help("Share of clips that cannot be used at which the run stops."),
      row_of(&DataConfig::validation_share, "data.validation_share")
          .range(0, 0.9)
          .readers(read_by_train)
          .help("Share of the training data held out, where no val_data is given."),
  };
}

}  // namespace tandem
