// Rows of `model` and `data`.
#include "config/schema_rows.h"

namespace tandem {

std::vector<Setting> model_settings() {
  const auto row_of = [](auto member, const char* key) { return row(&Config::model, member, key); };
  return {
      row_of(&ModelConfig::name, "model.name")
          .help("Text-to-audio model, a folder in paths.model_dir; also names the output folder."),
      row_of(&ModelConfig::size, "model.size")
          .choices({"tiny", "small", "normal", "big"})
          .flag("--model-size")
          .readers(read_by_train)
          .help("Size of a model that is trained from its beginning."),
      row_of(&ModelConfig::dtype, "model.dtype")
          .choices({"auto", "float32", "bfloat16", "float16"})
          .help("Type of the weights when generating."),
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
          .help("Folder or index of the validation data; null: no validation."),
      row_of(&DataConfig::dataset, "data.dataset").help("Public name of the caption dataset."),
      row_of(&DataConfig::captions_file, "data.captions_file")
          .help("CSV file of captions to turn into audio."),
      row_of(&DataConfig::id_column, "data.id_column").help("Column of the clip's id."),
      row_of(&DataConfig::text_column, "data.text_column").help("Column of the caption."),
      row_of(&DataConfig::batch_size, "data.batch_size")
          .range(1, 1e6)
          .flag("--batch-size")
          .readers(read_by_train)
          .help("Clips (bytes stage: sequences) a step, over all replicas."),
      row_of(&DataConfig::num_workers, "data.num_workers")
          .range(1, 1024)
          .flag("--num-workers")
          .aliases({"data.dataloader_num_workers"})
          .help("Threads that read and decode."),
      row_of(&DataConfig::buffer_size, "data.buffer_size")
          .range(1, 100000)
          .flag("--buffer-size")
          .aliases({"data.pipeline_buffer_size", "data.prefetch_buffer_size"})
          .readers(read_by_train)
          .help("Batches in the one queue before the model."),
      row_of(&DataConfig::data_gpu, "data.data_gpu")
          .flag("--data-gpu")
          .readers(read_by_train)
          .help("GPU that loads and preprocesses; needs data.model_gpu."),
      row_of(&DataConfig::model_gpu, "data.model_gpu")
          .flag("--model-gpu")
          .readers(read_by_train)
          .help("GPU that trains, or a list (`1,2,3`); needs data.data_gpu."),
      row_of(&DataConfig::model_start_delay, "data.model_start_delay")
          .range(0, 3600)
          .flag("--model-start-delay")
          .aliases({"data.pipeline_start_delay"})
          .readers(read_by_train)
          .help("Seconds that training waits at most for a full buffer."),
      row_of(&DataConfig::use_native_loading, "data.use_native_loading")
          .old_names({"data.use_tf_native_loading"})
          .help("Native reader; false: the general decoder for every file, slower, same result."),
      row_of(&DataConfig::prefetch_to_gpu, "data.prefetch_to_gpu")
          .help("Batches wait in GPU memory instead of host memory."),
      row_of(&DataConfig::enhanced_gpu_prefetch, "data.enhanced_gpu_prefetch")
          .help("The prefetch depth follows the measured jitter."),
      row_of(&DataConfig::optimize_cpu_gpu_overlap, "data.optimize_cpu_gpu_overlap")
          .help("Copies and computation run on different streams."),
      row_of(&DataConfig::pin_memory, "data.pin_memory")
          .help("Page-locked host memory for copies."),
      row_of(&DataConfig::prefetch_factor, "data.prefetch_factor")
          .range(1, 1024)
          .help("Batches that each worker prepares ahead."),
  };
}

}  // namespace tandem
