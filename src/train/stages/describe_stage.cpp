#include "train/stages/describe_stage.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "device/registry.h"
#include "models/bytes/byte_gpt.h"
#include "models/xtts/dvae.h"
#include "models/xtts/normed_vocoder.h"
#include "models/xtts/xtts.h"
#include "tandem/error.h"
#include "train/rules/fused_step.h"
#include "train/rules/lora.h"
#include "train/stages/decoder_stage.h"
#include "train/voice_parts.h"

namespace tandem {
namespace {

// Embeddings, then each block (two norms, attention 4 D^2, MLP 8 D^2, biases), then the last norm.
int64_t count_byte_gpt(const ByteGptSize& size) {
  const int64_t d = size.width;
  return (256 + size.context) * d + size.layers * (12 * d * d + 13 * d) + 2 * d;
}

void describe_bytes(const Config& config, TrainPlan& plan) {
  const ByteGptSize size = byte_gpt_size(config.model.size);
  plan.parameters = count_byte_gpt(size);
  plan.tokens_a_step = plan.batch_size * plan.accumulation * size.context;
  plan.facts = {
      {"stage, size", fmt::format("bytes, {}: {} layers, width {}, context {}", config.model.size,
                                  size.layers, size.width, size.context)}};
  const auto replicas = static_cast<int64_t>(plan.strategy.replicas.size());
  const int64_t places = (plan.batch_size + replicas - 1) / replicas * size.context;
  // Kept for the backward pass, per place and block: about 16 D numbers; logits and their softmax
  // at the end.
  const int64_t kept = size.layers * 16 * size.width + 2 * 256;
  plan.activation_bytes = 4 * static_cast<uint64_t>(places * kept);
}

void count_gpt(const Config& config, int64_t whole, const XttsGptSize& size, TrainPlan& plan) {
  const TrainingConfig& training = config.training;
  plan.parameters = whole;
  if (training.lora_rank > 0) {
    plan.frozen = whole;
    plan.parameters = 0;
    GptLora lora = GptLora::sized(size, {.rank = training.lora_rank});
    lora.list("", count_into(plan.parameters));
  }
  const bool alone = plan.strategy.replicas.size() == 1 && plan.accumulation == 1;
  const LogicalDevice& device = DeviceRegistry::get().find(plan.strategy.replicas.front());
  if (alone && fuses_gpt_step(training, device.kind()))  // the layers' four matrices
    plan.half_gradients = size.layers * 12 * size.width * size.width;
}

void describe_speech(const Config& config, TrainPlan& plan) {
  const XttsConfig model = voice_config(config);
  const XttsCounts counts = count_parameters(model);
  const std::string& stage = config.training.stage;
  const XttsGptSize& gpt = model.gpt;
  const std::string from =
      config.model.pretrained ? "from `" + *config.model.pretrained + "`" : "new";
  const auto name = [&](const std::string& what) {
    plan.facts.emplace_back(
        "stage, size",
        fmt::format("{}, {}: {}, {}", stage,
                    config.model.pretrained ? "as it is" : config.model.size, what, from));
  };
  if (stage == "dvae") {
    plan.parameters = Dvae::count_parameters(model);
    name(fmt::format("codes of width {}, {} of them kept", model.dvae_width, gpt.audio_tokens - 2));
  } else if (stage == "decoder") {
    const Vocoder::Size size = Vocoder::size_of(model);
    plan.parameters = NormedVocoder::count_parameters(size);
    Discriminators judges;
    judges.size = discriminators_for(size);
    judges.list("", count_into(plan.parameters));
    plan.frozen = counts.gpt + counts.speaker_encoder;
    name(fmt::format("HiFi-GAN of width {}, and discriminators", model.vocoder_width));
  } else {
    count_gpt(config, counts.gpt, gpt, plan);
    name(fmt::format("{} layers, width {}, {} heads, {} text tokens", gpt.layers, gpt.width,
                     gpt.heads, gpt.text_tokens));
  }
}

}  // namespace

void describe_stage(const Config& config, TrainPlan& plan) {
  config.training.stage == "bytes" ? describe_bytes(config, plan) : describe_speech(config, plan);
}

void create_model_only(const Config& config) {
  at::NoGradGuard no_grad;
  if (config.training.stage == "bytes") {
    ByteGpt::make(byte_gpt_size(config.model.size), static_cast<uint64_t>(config.training.seed));
    return;
  }
  VoiceParts parts = open_voice_parts(config);
  const at::TensorOptions here = at::TensorOptions().device(
      DeviceScope::current() ? DeviceScope::current()->torch_device() : at::Device(at::kCPU));
  std::vector<at::Tensor> moved;
  const auto move = [&](const std::string&, at::Tensor& tensor) {
    // A new model has no statistics of mels yet.
    if (tensor.defined()) moved.push_back(tensor.to(here, false, /*copy=*/true));
  };
  if (config.training.stage == "dvae" && parts.dvae) {
    parts.dvae->visit("", move);
  } else {
    parts.xtts.visit(move);
  }
}

}  // namespace tandem
