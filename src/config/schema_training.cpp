// Rows of `training`.
#include "config/schema_rows.h"

namespace tandem {

std::vector<Setting> training_settings() {
  const auto row_of = [](auto member, const char* key) {
    return row(&Config::training, member, key);
  };
  using T = TrainingConfig;
  return {
      row_of(&T::stage, "training.stage")
          .choices({"bytes", "gpt", "dvae", "decoder", "all"})
          .flag("--stage")
          .readers(read_by_train)
          .help("What is trained."),
      row_of(&T::multi_gpu, "training.multi_gpu")
          .flag("--multi-gpu")
          .readers(read_by_train)
          .help("Mirrored replicas when two or more GPUs are visible."),
      row_of(&T::visible_gpus, "training.visible_gpus")
          .flag("--visible-gpus")
          .readers(read_by_train | read_by_bench)
          .help("GPUs to use: `0`, `0,1` or UUIDs; null: all."),
      row_of(&T::epochs, "training.epochs")
          .range(1, 1e9)
          .flag("--epochs")
          .readers(read_by_train)
          .help("Times through the training data."),
      row_of(&T::max_steps, "training.max_steps")
          .range(1, 1e12)
          .flag("--max-steps")
          .readers(read_by_train)
          .help("Optimizer steps at most; null: as many as the epochs have."),
      row_of(&T::learning_rate, "training.learning_rate")
          .above(0, 10)
          .flag("--learning-rate")
          .readers(read_by_train)
          .help("Step size of the optimizer."),
      row_of(&T::gradient_accumulation_steps, "training.gradient_accumulation_steps")
          .range(1, 100000)
          .flag("--grad-accum")
          .aliases({"training.gradient_accumulation"})
          .readers(read_by_train)
          .help("Batches whose gradients make one optimizer step."),
      row_of(&T::seed, "training.seed")
          .at_least(0)
          .flag("--seed")
          .readers(read_by_train | read_by_bench)
          .help("Start of every random sequence of a training run."),
      row_of(&T::deterministic, "training.deterministic")
          .readers(read_by_train)
          .help("Only operations that give the same bits every time."),
      row_of(&T::precision, "training.precision")
          .choices({"fp32", "tf32", "bf16", "fp16"})
          .flag("--precision")
          .help("Number format of the training step."),
      row_of(&T::save_step, "training.save_step")
          .range(1, 1e12)
          .readers(read_by_train)
          .help("Steps between checkpoints."),
      row_of(&T::val_step, "training.val_step")
          .range(1, 1e12)
          .readers(read_by_train)
          .help("Steps between validations."),
      row_of(&T::keep_checkpoints, "training.keep_checkpoints")
          .range(1, 1e6)
          .readers(read_by_train)
          .help("Newest checkpoints that stay on disk."),
      row_of(&T::optimization_level, "training.optimization_level")
          .choices({"basic", "enhanced", "experimental", "plateau_breaker"})
          .flag("--optimization-level")
          .help("Named set of training values."),
      row_of(&T::enable_graph_mode, "training.enable_graph_mode")
          .help("The whole step is captured as a CUDA graph."),
      row_of(&T::enable_kernel_fusion, "training.enable_kernel_fusion")
          .old_names({"training.enable_xla_compilation"})
          .help("Fused kernels."),
      row_of(&T::enable_eager_debug, "training.enable_eager_debug")
          .help("No graph, no fusion; every tensor is checked for NaN."),
      row_of(&T::enable_memory_isolation, "training.enable_memory_isolation")
          .flag("--enable-memory-isolation")
          .readers(read_by_train)
          .help("Hard memory limits on the data GPU and the model GPU."),
      row_of(&T::data_gpu_memory, "training.data_gpu_memory")
          .range(1, 1e9)
          .flag("--data-gpu-memory")
          .readers(read_by_train)
          .help("Limit of the data GPU in MB; null: none."),
      row_of(&T::model_gpu_memory, "training.model_gpu_memory")
          .range(1, 1e9)
          .flag("--model-gpu-memory")
          .readers(read_by_train)
          .help("Limit of the model GPU in MB; null: none."),
      row_of(&T::check_replicas, "training.check_replicas")
          .range(0, 1e12)
          .readers(read_by_train)
          .help("Steps between proofs that the replicas are identical; 0: never."),
      row_of(&T::collective_timeout, "training.collective_timeout")
          .above(0, 86400)
          .readers(read_by_train)
          .help("Seconds until a missing rank stops the run."),
  };
}

}  // namespace tandem
