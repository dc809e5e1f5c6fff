// The fused pass reading other codes than it learns, against the plain model. Needs a GPU.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAGraph.h>
#include <gtest/gtest.h>

#include "device/device_scope.h"
#include "device/registry.h"
#include "gpu/in_child.h"
#include "gpu/plain_gpt.h"
#include "nn/gpt_step/gpt_step.h"
#include "train/stages/code_noise.h"

namespace tandem {
namespace {

constexpr int64_t noise_kinds = 35;

LogicalDevice& noise_gpu() {
  configure_devices({});
  return *DeviceRegistry::get().gpus().front();
}

GptStepOptions noise_options() {
  GptStepOptions options = small_options();
  options.start_audio = noise_kinds;
  options.stop_audio = noise_kinds + 1;
  options.reads_stop = true;
  return options;
}

GptStepBatch noise_batch() {
  TriedBatch tried =
      random_gpt_batch({}, noise_options(), {7, 0, 12, 3, 41}, {20, 0, 33, 310, 129}, 37, 2);
  tried.batch.codes.remainder_(noise_kinds);
  return tried.batch;
}

CodeNoise noise_at(const at::Tensor& step) {
  return {.share = 0.3, .kinds = noise_kinds, .seed = 6, .step = step};
}

// The same weights in float32 with gradients, by the names of weights_by_name.
XttsGpt plain_of(GptStepWeights& weights, const GptStepOptions& options,
                 std::map<std::string, at::Tensor>& leaves) {
  for (const auto& [name, weight] : weights_by_name(weights))
    leaves[name] = weight->weight.to(at::kFloat).detach().requires_grad_(true);
  const auto norm = [&](const std::string& name) {
    LayerNorm made;
    made.weight = leaves.at(name + "_weight");
    made.bias = leaves.at(name + "_bias");
    return made;
  };
  XttsGpt gpt;
  gpt.size.layers = static_cast<int64_t>(weights.blocks.size());
  gpt.size.width = weights.text_embedding.weight.size(1);
  gpt.size.heads = weights.heads;
  gpt.size.start_text_token = options.start_text;
  gpt.size.stop_text_token = options.stop_text;
  gpt.size.start_audio_token = options.start_audio;
  gpt.size.stop_audio_token = options.stop_audio;
  gpt.text_embedding = leaves.at("text_embedding");
  gpt.audio_embedding = leaves.at("audio_embedding");
  gpt.text_positions = leaves.at("text_positions");
  gpt.audio_positions = leaves.at("audio_positions");
  for (size_t i = 0; i < weights.blocks.size(); ++i) {
    const std::string layer = std::to_string(i) + ".";
    const auto leaf = [&](const char* name) { return leaves.at(layer + name); };
    gpt.blocks.push_back({.norm_attention = norm(layer + "norm1"),
                          .norm_mlp = norm(layer + "norm2"),
                          .qkv_weight = leaf("qkv_weight"),
                          .qkv_bias = leaf("qkv_bias"),
                          .project_weight = leaf("project_weight"),
                          .project_bias = leaf("project_bias"),
                          .expand_weight = leaf("expand_weight"),
                          .expand_bias = leaf("expand_bias"),
                          .contract_weight = leaf("contract_weight"),
                          .contract_bias = leaf("contract_bias")});
  }
  gpt.last_norm = norm("last_norm");
  gpt.final_norm = norm("final_norm");
  gpt.text_head.weight = leaves.at("text_head_weight");
  gpt.text_head.bias = leaves.at("text_head_bias");
  gpt.audio_head.weight = leaves.at("audio_head_weight");
  gpt.audio_head.bias = leaves.at("audio_head_bias");
  return gpt;
}

double noise_error(const at::Tensor& ours, const at::Tensor& reference) {
  const at::Tensor a = ours.to(at::kDouble), b = reference.to(at::kDouble);
  return (a - b).norm().item<double>() / std::max(b.norm().item<double>(), 1e-20);
}

at::Tensor all_of(GptStepWeights& weights, const GptStepResult& result) {
  std::vector<at::Tensor> parts = {result.losses, result.latents_gradient.flatten()};
  for (const auto& [name, weight] : weights_by_name(weights))
    parts.push_back(weight->gradient.flatten());
  return at::cat(parts).clone();
}

// With `overwrites` the gradients of a step before must not matter.
void expect_near_plain_reading(const GptStepOptions& options, bool overwrites) {
  GptStepWeights weights = random_gpt_weights({}, 1);
  GptStepBatch batch = noise_batch();
  batch.read_codes = noisy_codes(batch.codes, batch.code_lengths, noise_at(step_number(5)));
  batch.overwrites = overwrites;
  EXPECT_FALSE(batch.read_codes.equal(batch.codes));
  GptStep step(weights, options);
  const at::Tensor one = at::ones({}, at::TensorOptions(at::kCUDA));
  if (overwrites) step.run(batch, step_number(4), one, 78);
  const GptStepResult result = step.run(batch, step_number(5), one, 77);

  std::map<std::string, at::Tensor> leaves;
  const XttsGpt gpt = plain_of(weights, options, leaves);
  const at::Tensor latents = batch.latents.detach().clone().requires_grad_(true);
  const bool recalls = options.recall_weight > 0;
  const XttsGpt::Learned plain = learn_reading(gpt,
                                               {.text = batch.text,
                                                .text_lengths = batch.text_lengths,
                                                .codes = batch.codes,
                                                .code_lengths = batch.code_lengths,
                                                .unlearned = batch.slice,
                                                .conditioning = latents,
                                                .reads_stop = options.reads_stop,
                                                .recalls = recalls},
                                               batch.read_codes);
  const at::Tensor text = plain.text_loss / batch.whole[0],
                   audio = plain.audio_loss / batch.whole[1];
  EXPECT_LT(noise_error(result.losses, at::stack({text, audio}).detach()), 1e-2);
  at::Tensor loss = text * options.text_loss_weight + audio;
  EXPECT_EQ(result.recall.defined(), recalls);
  if (recalls) {
    const at::Tensor recall = plain.recall_loss / batch.whole[1];
    EXPECT_LT(noise_error(result.recall, recall.detach()), 3e-2);  // small: most are told
    loss = loss + recall * options.recall_weight;
  }
  std::vector<at::Tensor> inputs = {latents};
  for (const auto& [name, weight] : weights_by_name(weights)) inputs.push_back(leaves.at(name));
  const auto expected = torch::autograd::grad({loss}, inputs);
  EXPECT_LT(noise_error(result.latents_gradient, expected[0]), 2e-2);
  size_t next = 1;
  for (const auto& [name, weight] : weights_by_name(weights))
    EXPECT_LT(noise_error(weight->gradient, expected[next++]), 2e-2) << name;
}

}  // namespace

TEST(GptStepNoise, GradientsAreThoseOfThePlainModelThatReadsTheSame) {
  IN_CHILD({
    DeviceScope scope(noise_gpu());
    expect_near_plain_reading(noise_options(), false);
  });
}

TEST(GptStepNoise, RecallsWhatWasRead) {
  IN_CHILD({
    DeviceScope scope(noise_gpu());
    GptStepOptions options = noise_options();
    options.recall_weight = 0.7;
    expect_near_plain_reading(options, false);
    expect_near_plain_reading(options, true);
  });
}

TEST(GptStepNoise, IsDrawnAnewByACapturedPassAndAsOnTheCpu) {
  IN_CHILD({
    DeviceScope scope(noise_gpu());
    GptStepWeights weights = random_gpt_weights({}, 1);
    GptStep step(weights, noise_options());
    const GptStepBatch batch = noise_batch();
    const at::Tensor one = at::ones({}, at::TensorOptions(at::kCUDA)), number = step_number(1);
    const auto run = [&](const at::Tensor& at) {
      GptStepBatch noisy = batch;
      noisy.overwrites = true;
      noisy.read_codes = noisy_codes(batch.codes, batch.code_lengths, noise_at(at));
      step.run(noisy, at, one, 7);
      return noisy.read_codes;
    };
    const at::Tensor first = run(number), here = first.cpu();
    EXPECT_TRUE(here.equal(noisy_codes(batch.codes.cpu(), batch.code_lengths.cpu(),
                                       noise_at(at::full({}, 1, at::kLong)))));
    const at::Tensor before = all_of(weights, step.result());
    run(step_number(2));
    const at::Tensor expected = all_of(weights, step.result());
    EXPECT_FALSE(before.equal(expected));

    at::cuda::CUDAGraph graph;
    graph.capture_begin();
    run(number);
    graph.capture_end();
    number.fill_(2);
    graph.replay();
    EXPECT_TRUE(expected.equal(all_of(weights, step.result())));
  });
}

TEST(GptStepNoise, RefusesCodesOfAnotherShape) {
  IN_CHILD({
    DeviceScope scope(noise_gpu());
    GptStepWeights weights = random_gpt_weights({}, 1);
    GptStep step(weights, noise_options());
    GptStepBatch batch = noise_batch();
    batch.read_codes = batch.codes.narrow(1, 0, 5).contiguous();
    std::string sentence;
    try {
      step.run(batch, step_number(1), at::ones({}, at::TensorOptions(at::kCUDA)), 0);
    } catch (const std::exception& error) {
      sentence = error.what();
    }
    EXPECT_EQ(sentence,
              "`read_codes` of a training step's batch must be [5, 312] of Long on the GPU");
  });
}

}  // namespace tandem
