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
          .help(
              "Optimizer steps, whatever training.epochs says; null: as many as the epochs have."),
      row_of(&T::max_minutes, "training.max_minutes")
          .above(0, 1e6)
          .flag("--max-minutes")
          .readers(read_by_train)
          .help("The run (of stage all each) ends after this time; schedules go by steps. null: it "
                "does not."),
      row_of(&T::stage_steps, "training.stage_steps")
          .flag("--stage-steps")
          .readers(read_by_train)
          .help("Stage all: steps of dvae, gpt and decoder, such as 3000,9000,6000."),
      row_of(&T::learning_rate, "training.learning_rate")
          .above(0, 10)
          .flag("--learning-rate")
          .readers(read_by_train)
          .help("Step size of the optimizer; null: what fits the stage."),
      row_of(&T::schedule, "training.schedule")
          .choices({"constant", "cosine", "restarts", "noam", "multistep"})
          .flag("--schedule")
          .readers(read_by_train)
          .help("How the learning rate moves."),
      row_of(&T::warmup_steps, "training.warmup_steps")
          .range(0, 1e12)
          .readers(read_by_train)
          .help("Steps over which the learning rate rises from 0."),
      row_of(&T::final_learning_rate, "training.final_learning_rate")
          .range(0, 1)
          .readers(read_by_train)
          .help("cosine and restarts: lowest learning rate, as a share of learning_rate."),
      row_of(&T::restart_steps, "training.restart_steps")
          .range(1, 1e12)
          .readers(read_by_train)
          .help("restarts: steps of the first cycle; each next one is twice as long."),
      row_of(&T::milestones, "training.milestones")
          .readers(read_by_train)
          .help("multistep: steps at which the learning rate is multiplied by milestone_factor."),
      row_of(&T::milestone_factor, "training.milestone_factor")
          .above(0, 1)
          .readers(read_by_train)
          .help("multistep: what the learning rate is multiplied by."),
      row_of(&T::weight_decay, "training.weight_decay")
          .range(0, 10)
          .readers(read_by_train)
          .help("Of AdamW; biases, norms and embeddings have none."),
      row_of(&T::beta1, "training.beta1")
          .range(0, 0.9999)
          .readers(read_by_train)
          .help("Of AdamW: memory of the gradient's mean."),
      row_of(&T::beta2, "training.beta2")
          .range(0, 0.99999)
          .readers(read_by_train)
          .help("Of AdamW: memory of its square."),
      row_of(&T::gradient_clip, "training.gradient_clip")
          .range(0, 1e9)
          .readers(read_by_train)
          .help("Largest norm of the gradient; larger ones are scaled down; 0: never."),
      row_of(&T::ema_decay, "training.ema_decay")
          .range(0, 0.999999)
          .readers(read_by_train)
          .help("Moving average of the weights, which is then validated and exported; 0: none."),
      row_of(&T::dropout, "training.dropout")
          .range(0, 0.9)
          .readers(read_by_train)
          .help("Of the GPT, on embeddings and on both branches of every layer."),
      row_of(&T::text_loss_weight, "training.text_loss_weight")
          .range(0, 100)
          .readers(read_by_train)
          .help("GPT: weight of the text's loss beside that of the audio."),
      row_of(&T::conditioning_clip, "training.conditioning_clip")
          .choices({"other", "same"})
          .readers(read_by_train)
          .help("Clip whose slice tells the voice: another of the same speaker in the batch where "
                "there is one, or the same; always the same with --compat coqui."),
      row_of(&T::mask_conditioning, "training.mask_conditioning")
          .readers(read_by_train)
          .help("GPT: codes of the slice that tells the voice are not learned, where it is the "
                "clip's own."),
      row_of(&T::code_noise, "training.code_noise")
          .range(0, 0.9)
          .readers(read_by_train)
          .help("GPT: share of the codes it reads that are replaced by others at random; null: 0.1 "
                "for a GPT from nothing, 0 for a trained one or with --compat coqui."),
      row_of(&T::recall_weight, "training.recall_weight")
          .range(0, 100)
          .readers(read_by_train)
          .help("GPT: weight of telling the code that was read from its latent, which the decoder "
                "speaks from: for a GPT from nothing on little speech."),
      row_of(&T::fp8_products, "training.fp8_products")
          .readers(read_by_train)
          .help("GPT in bf16 on a Hopper GPU: products of the forward pass and of gradients that "
                "flow back are computed in 8-bit floats, a scale a row; gradients of weights stay "
                "as they are."),
      row_of(&T::recompute, "training.recompute")
          .flag("--recompute")
          .readers(read_by_train)
          .help("GPT: activations are computed again in the backward pass: slower, less memory."),
      row_of(&T::lora_rank, "training.lora_rank")
          .range(0, 4096)
          .flag("--lora-rank")
          .readers(read_by_train)
          .help("GPT: trains additions of this rank instead of the weights; 0: the weights."),
      row_of(&T::lora_alpha, "training.lora_alpha")
          .above(0, 1e6)
          .readers(read_by_train)
          .help("Weight of the additions, over their rank."),
      row_of(&T::compat, "training.compat")
          .choices({"none", "coqui"})
          .flag("--compat")
          .readers(read_by_train)
          .help("coqui: masks, paddings, schedule and weight decay as coqui-tts has them."),
      row_of(&T::early_stop_patience, "training.early_stop_patience")
          .range(0, 1e9)
          .readers(read_by_train)
          .help("Validations without a better loss until the run ends; 0: it does not."),
      row_of(&T::max_bad_steps, "training.max_bad_steps")
          .range(1, 1e9)
          .readers(read_by_train)
          .help("Steps skipped one after another (not finite, or a spike), or spikes that ten good "
                "steps each have not made up for, until the run stops."),
      row_of(&T::spike_factor, "training.spike_factor")
          .range(0, 1e9)
          .readers(read_by_train)
          .help("A gradient norm so many times the usual one is skipped; 0: none is."),
      row_of(&T::dvae_codes, "training.dvae_codes")
          .range(0, 1 << 20)
          .readers(read_by_train)
          .help("DVAE: codes it learns with; the most used ones are kept. 0: 8 times as many."),
      row_of(&T::codebook_decay, "training.codebook_decay")
          .range(0, 0.99999)
          .readers(read_by_train)
          .help("DVAE: memory of the codebook's moving averages."),
      row_of(&T::commitment, "training.commitment")
          .range(0, 100)
          .readers(read_by_train)
          .help("DVAE: weight of the commitment beside the reconstruction."),
      row_of(&T::segment_codes, "training.segment_codes")
          .range(4, 600)
          .readers(read_by_train)
          .help("Decoder: codes of one window of sound."),
      row_of(&T::own_codes_share, "training.own_codes_share")
          .range(0, 1)
          .readers(read_by_train)
          .help("Decoder: share of clips whose latents come from the model's own codes."),
      row_of(&T::feature_loss_weight, "training.feature_loss_weight")
          .range(0, 1e6)
          .readers(read_by_train)
          .help("Decoder: weight of feature matching."),
      row_of(&T::mel_loss_weight, "training.mel_loss_weight")
          .range(0, 1e6)
          .readers(read_by_train)
          .help("Decoder: weight of the mel distance."),
      row_of(&T::speaker_loss_weight, "training.speaker_loss_weight")
          .range(0, 1e6)
          .readers(read_by_train)
          .help("Decoder: weight of speaker consistency."),
      row_of(&T::spectral_loss_weight, "training.spectral_loss_weight")
          .range(0, 1e6)
          .readers(read_by_train)
          .help("Decoder: weight of the distance of spectra in three resolutions, which also hear "
                "what is shorter than a mel's window; 0: not computed."),
      row_of(&T::discriminator_start, "training.discriminator_start")
          .range(0, 1e12)
          .readers(read_by_train)
          .help("Decoder: steps without discriminators at the start."),
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
          .readers(read_by_train)
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
          .readers(read_by_train)
          .help("Named set of training values."),
      row_of(&T::enable_graph_mode, "training.enable_graph_mode")
          .readers(read_by_train)
          .help("The whole step is captured as a CUDA graph."),
      row_of(&T::enable_kernel_fusion, "training.enable_kernel_fusion")
          .old_names({"training.enable_xla_compilation"})
          .readers(read_by_train)
          .help("The gpt stage in bf16 takes its step in fused kernels of its own."),
      row_of(&T::enable_eager_debug, "training.enable_eager_debug")
          .readers(read_by_train)
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
