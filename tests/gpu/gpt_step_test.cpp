// The fused training pass against a plain float32 one with autograd. Needs a GPU.
#include "nn/gpt_step/gpt_step.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAGraph.h>
#include <gtest/gtest.h>

#include "device/device_scope.h"
#include "device/registry.h"
#include "gpu/in_child.h"
#include "gpu/plain_gpt.h"
#include "models/xtts/xtts_gpt.h"
#include "nn/gpt_step/gpt_attention.h"
#include "tandem/error.h"

namespace tandem {
namespace {

LogicalDevice& step_gpu() {
  configure_devices({});
  return *DeviceRegistry::get().gpus().front();
}

double relative_error(const at::Tensor& ours, const at::Tensor& reference) {
  const at::Tensor a = ours.to(at::kDouble), b = reference.to(at::kDouble).to(a.device());
  return (a - b).norm().item<double>() / std::max(b.norm().item<double>(), 1e-20);
}

const std::vector<int64_t> some_texts = {7, 0, 12, 3, 41}, some_sounds = {20, 0, 33, 310, 129};

at::Tensor scale_of(double scale) {
  return at::full({}, scale, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
}

void clear_gradients(GptStepWeights& weights, double value = 0) {
  for (const auto& [name, weight] : weights_by_name(weights)) weight->gradient.fill_(value);
}

// Gradients, losses and the latents' gradient as one tensor, to compare bits.
at::Tensor all_results(GptStepWeights& weights, const GptStepResult& result) {
  std::vector<at::Tensor> parts = {result.losses, result.latents_gradient.flatten()};
  for (const auto& [name, weight] : weights_by_name(weights))
    parts.push_back(weight->gradient.flatten());
  return at::cat(parts).clone();
}

void expect_near_plain(const PlainGptSize& size, const GptStepOptions& options, int64_t tail) {
  GptStepWeights weights = random_gpt_weights(size, 1);
  const TriedBatch tried = random_gpt_batch(size, options, some_texts, some_sounds, tail, 2);
  GptStep step(weights, options);
  clear_gradients(weights);
  const GptStepResult result = step.run(tried.batch, step_number(5), scale_of(3), 77);
  std::vector<at::Tensor> masks;
  if (options.dropout > 0)
    for (int64_t i = 0; i <= 2 * size.layers; ++i)
      masks.push_back(step.dropout_mask(i, options.most_places, step_number(5), 77));
  const PlainPass plain = plain_gpt_pass(weights, options, tried, masks, 3);
  EXPECT_LT(relative_error(result.losses, plain.losses), 1e-2) << result.losses << plain.losses;
  EXPECT_LT(relative_error(result.latents_gradient, plain.latents_gradient), 2e-2);
  double worst = 0;
  for (const auto& [name, weight] : weights_by_name(weights)) {
    const double error = relative_error(weight->gradient, plain.gradients.at(name));
    worst = std::max(worst, error);
    EXPECT_LT(error, 2e-2) << name;
  }
  std::printf("width %ld, heads %ld, dropout %.1f: worst gradient %.2e, losses %.2e\n", size.width,
              size.heads, options.dropout, worst, relative_error(result.losses, plain.losses));
}

}  // namespace

TEST(GptStep, GradientsAreThoseOfThePlainModel) {
  IN_CHILD({
    DeviceScope scope(step_gpu());
    expect_near_plain({}, small_options(), 37);
    GptStepOptions options = small_options();
    options.reads_stop = true;
    options.tune = true;
    expect_near_plain({}, options, 0);
    // Heads of 56, for which there is no kernel of our own; odd vocabularies.
    expect_near_plain({.layers = 2, .width = 280, .heads = 5, .text_tokens = 133}, options, 430);
    // More than one eight of columns a thread.
    expect_near_plain({.layers = 1, .width = 1152, .heads = 18}, small_options(), 1);
  });
}

TEST(GptStep, DropoutIsTheSameMaskForwardAndBackward) {
  IN_CHILD({
    DeviceScope scope(step_gpu());
    GptStepOptions options = small_options();
    options.dropout = 0.2;
    expect_near_plain({}, options, 12);
    GptStepWeights weights = random_gpt_weights({}, 1);
    GptStep step(weights, options);
    const at::Tensor mask = step.dropout_mask(3, 1400, step_number(9), 4);
    EXPECT_NEAR(mask.mean().item<double>(), 1, 0.01);
    EXPECT_NEAR((mask == 0).to(at::kFloat).mean().item<double>(), 0.2, 0.01);
    EXPECT_NEAR(mask.max().item<double>(), 1 / 0.8, 1e-4);
    const auto same = [&](const at::Tensor& other) {
      return (mask == other).to(at::kFloat).mean().item<double>();
    };
    EXPECT_EQ(same(step.dropout_mask(3, 1400, step_number(9), 4)), 1);
    // Independent masks agree in 0.8^2 + 0.2^2 of all places.
    EXPECT_NEAR(same(step.dropout_mask(2, 1400, step_number(9), 4)), 0.68, 0.01);
    EXPECT_NEAR(same(step.dropout_mask(3, 1400, step_number(10), 4)), 0.68, 0.01);
    EXPECT_NEAR(same(step.dropout_mask(3, 1400, step_number(9), 5)), 0.68, 0.01);
  });
}

TEST(GptStep, GivesTheSameBitsInEveryWayToRunIt) {
  IN_CHILD({
    DeviceScope scope(step_gpu());
    const PlainGptSize size{.layers = 8};
    GptStepOptions options = small_options();
    options.dropout = 0.1;
    GptStepWeights weights = random_gpt_weights(size, 1);
    const TriedBatch tried = random_gpt_batch(size, options, some_texts, some_sounds, 37, 2);
    const auto run = [&](GptStep& step, bool overwrites) {
      GptStepBatch batch = tried.batch;
      batch.overwrites = overwrites;
      return all_results(weights, step.run(batch, step_number(3), scale_of(1), 7));
    };
    GptStep step(weights, options);
    clear_gradients(weights);
    const at::Tensor once = run(step, false);
    EXPECT_TRUE(at::isfinite(once).all().item<bool>());
    clear_gradients(weights);
    EXPECT_TRUE(once.equal(run(step, false)));
    clear_gradients(weights, 1e9);
    EXPECT_TRUE(once.equal(run(step, true))) << "overwriting instead of adding";

    options.recompute = true;
    GptStep recomputing(weights, options);
    EXPECT_LT(recomputing.buffer_bytes(), step.buffer_bytes() - (20 << 20));
    clear_gradients(weights);
    EXPECT_TRUE(once.equal(run(recomputing, false))) << "recomputing";

    clear_gradients(weights);
    EXPECT_EQ(step.pieces(), 6);
    for (int piece = 0; piece < step.pieces(); ++piece) {
      step.run_piece(piece, tried.batch, step_number(3), scale_of(1), 7);
      // What is final does not change any more.
      for (int64_t layer = step.first_layer(piece); layer < size.layers; ++layer)
        weights.blocks[static_cast<size_t>(layer)].qkv_bias.gradient.mul_(2);
    }
    EXPECT_EQ(step.first_layer(step.pieces() - 1), 0);
    for (int piece = step.pieces() - 1; piece >= 0; --piece)
      for (int64_t layer = step.first_layer(piece); layer < size.layers; ++layer)
        weights.blocks[static_cast<size_t>(layer)].qkv_bias.gradient.mul_(0.5);
    EXPECT_TRUE(once.equal(all_results(weights, step.result()))) << "pieces";
  });
}

// The gradients of the layers' matrices may be kept in bfloat16; all others are the same bits.
TEST(GptStep, RoundsMatricesGradientsKeptInHalf) {
  IN_CHILD({
    DeviceScope scope(step_gpu());
    const PlainGptSize size{.layers = 8};
    const GptStepOptions options = small_options();
    GptStepWeights full = random_gpt_weights(size, 1), half = random_gpt_weights(size, 1);
    for (GptStepBlock& b : half.blocks)
      for (TrainedWeight* one :
           {&b.qkv_weight, &b.project_weight, &b.expand_weight, &b.contract_weight})
        one->gradient = at::full_like(one->weight, NAN);
    TriedBatch tried = random_gpt_batch(size, options, some_texts, some_sounds, 37, 2);
    GptStep whole(full, options), halved(half, options);
    for (const bool overwrites : {true, false}) {
      tried.batch.overwrites = overwrites;
      whole.run(tried.batch, step_number(3), scale_of(1), 7);
      halved.run(tried.batch, step_number(3), scale_of(1), 7);
      const NamedWeights expected = weights_by_name(full), found = weights_by_name(half);
      for (size_t i = 0; i < found.size(); ++i) {
        const at::Tensor &a = found[i].second->gradient, &b = expected[i].second->gradient;
        if (a.scalar_type() == at::kFloat) {
          EXPECT_TRUE(a.equal(b)) << found[i].first << overwrites;
        } else {
          EXPECT_LT(relative_error(a, b), 4e-3) << found[i].first << overwrites;
        }
      }
    }
    full.blocks[1].qkv_bias.gradient = full.blocks[1].qkv_bias.gradient.to(at::kBFloat16);
    EXPECT_THROW(GptStep(full, options), Error) << "a bias";
  });
}

TEST(GptStep, AddsUpOverBatches) {
  IN_CHILD({
    DeviceScope scope(step_gpu());
    const GptStepOptions options = small_options();
    GptStepWeights weights = random_gpt_weights({}, 1);
    GptStep step(weights, options);
    std::map<std::string, at::Tensor> sum;
    std::vector<TriedBatch> batches = {
        random_gpt_batch({}, options, some_texts, some_sounds, 3, 2),
        random_gpt_batch({}, options, {30, 5, 2}, {4, 9, 200}, 60, 3)};
    for (const TriedBatch& one : batches) {
      clear_gradients(weights);
      step.run(one.batch, step_number(1), scale_of(1), 0);
      for (const auto& [name, weight] : weights_by_name(weights))
        sum[name] = sum.count(name) ? sum[name] + weight->gradient : weight->gradient.clone();
    }
    clear_gradients(weights);
    for (const TriedBatch& one : batches) step.run(one.batch, step_number(1), scale_of(1), 0);
    for (const auto& [name, weight] : weights_by_name(weights))
      EXPECT_LT(relative_error(weight->gradient, sum.at(name)), 1e-6) << name;
  });
}

TEST(GptStep, IsCapturedOnceAndReplayedForOtherBatchesOfItsShape) {
  IN_CHILD({
    DeviceScope scope(step_gpu());
    GptStepOptions options = small_options();
    options.dropout = 0.1;
    GptStepWeights weights = random_gpt_weights({}, 1);
    GptStep step(weights, options);
    const TriedBatch first = random_gpt_batch({}, options, {9, 20, 4}, {100, 50, 7}, 8, 2);
    TriedBatch other = random_gpt_batch({}, options, {1, 20, 0}, {60, 100, 0}, 0, 3);
    other.batch.places = first.batch.places;  // more behind its end
    const at::Tensor number = step_number(1), scale = scale_of(1);
    clear_gradients(weights);
    step.run(other.batch, step_number(2), scale, 7);
    const at::Tensor expected = all_results(weights, step.result());

    GptStepBatch fixed = first.batch;
    clear_gradients(weights);
    at::cuda::CUDAGraph graph;  // with memory of its own, as training captures
    graph.capture_begin();
    step.run(fixed, number, scale, 7);
    graph.capture_end();
    fixed.latents.copy_(other.batch.latents);
    fixed.text.copy_(other.batch.text);
    fixed.codes.copy_(other.batch.codes);
    fixed.text_lengths.copy_(other.batch.text_lengths);
    fixed.code_lengths.copy_(other.batch.code_lengths);
    fixed.slice.copy_(other.batch.slice);
    fixed.whole.copy_(other.batch.whole);
    number.fill_(2);
    clear_gradients(weights);
    graph.replay();
    EXPECT_TRUE(expected.equal(all_results(weights, step.result())));
  });
}

TEST(GptStep, LossesAreThoseOfTeacherForcing) {
  IN_CHILD({
    LogicalDevice& device = step_gpu();
    at::NoGradGuard no_gradients;
    XttsGptSize size = xtts_preset("small").gpt;
    XttsGpt gpt = XttsGpt::make(size, 1);
    size = gpt.size;
    DeviceScope scope(device);
    gpt.visit("", [&](const std::string&, at::Tensor& p) {
      p = p.to(at::kCUDA).to(at::kBFloat16).to(at::kFloat);
    });
    const at::Tensor text = at::randint(3, size.text_tokens, {3, 30}, at::kLong);
    const at::Tensor codes = at::randint(0, size.start_audio_token, {3, 50}, at::kLong);
    const at::Tensor texts = at::tensor({30, 11, 1}, at::kLong);
    const at::Tensor sounds = at::tensor({50, 47, 3}, at::kLong);
    const at::Tensor latents = at::randn({3, 32, size.width}, at::TensorOptions(at::kCUDA));
    for (int64_t row = 0; row < 3; ++row)  // as teacher_forced wants its texts
      text[row].slice(0, texts[row].item<int64_t>()).fill_(size.stop_text_token);
    const auto forced = gpt.teacher_forced(text, texts, codes, sounds * 1024, latents);

    const auto trained = [](const at::Tensor& t) {
      return TrainedWeight{t.to(at::kBFloat16), at::zeros_like(t)};
    };
    GptStepWeights w;
    w.heads = size.heads;
    w.text_embedding = trained(gpt.text_embedding);
    w.audio_embedding = trained(gpt.audio_embedding);
    w.text_positions = trained(gpt.text_positions);
    w.audio_positions = trained(gpt.audio_positions);
    for (const XttsGptBlock& b : gpt.blocks)
      w.blocks.push_back({.norm1_weight = trained(b.norm_attention.weight),
                          .norm1_bias = trained(b.norm_attention.bias),
                          .qkv_weight = trained(b.qkv_weight),
                          .qkv_bias = trained(b.qkv_bias),
                          .project_weight = trained(b.project_weight),
                          .project_bias = trained(b.project_bias),
                          .norm2_weight = trained(b.norm_mlp.weight),
                          .norm2_bias = trained(b.norm_mlp.bias),
                          .expand_weight = trained(b.expand_weight),
                          .expand_bias = trained(b.expand_bias),
                          .contract_weight = trained(b.contract_weight),
                          .contract_bias = trained(b.contract_bias)});
    w.last_norm_weight = trained(gpt.last_norm.weight);
    w.last_norm_bias = trained(gpt.last_norm.bias);
    w.final_norm_weight = trained(gpt.final_norm.weight);
    w.final_norm_bias = trained(gpt.final_norm.bias);
    w.text_head_weight = trained(gpt.text_head.weight);
    w.text_head_bias = trained(gpt.text_head.bias);
    w.audio_head_weight = trained(gpt.audio_head.weight);
    w.audio_head_bias = trained(gpt.audio_head.bias);
    GptStepOptions options = small_options();
    options.start_text = size.start_text_token;
    options.stop_text = size.stop_text_token;
    options.start_audio = size.start_audio_token;
    options.stop_audio = size.stop_audio_token;
    GptStep step(w, options);
    GptStepBatch batch;
    batch.latents = latents;
    batch.text = text.to(at::kCUDA);
    batch.text_lengths = texts.to(at::kCUDA);
    batch.codes = codes.to(at::kCUDA);
    batch.code_lengths = sounds.to(at::kCUDA);
    batch.slice = at::zeros({3, 2}, batch.text.options());
    batch.whole = at::tensor({45.0, 112.0}, at::kFloat).to(at::kCUDA);
    batch.places = 3 * 32 + 45 + 112;
    const auto judged = step.judge(batch);
    const at::Tensor losses = judged.losses.cpu();
    EXPECT_NEAR(losses[0].item<double>(), forced.loss_text.item<double>(), 2e-2);
    EXPECT_NEAR(losses[1].item<double>(), forced.loss_audio.item<double>(), 2e-2);
  });
}

TEST(GptStep, JudgesWithoutDropoutAndCountsHits) {
  IN_CHILD({
    DeviceScope scope(step_gpu());
    GptStepOptions options = small_options();
    GptStepWeights weights = random_gpt_weights({}, 1);
    const TriedBatch tried = random_gpt_batch({}, options, some_texts, some_sounds, 5, 2);
    const PlainPass plain = plain_gpt_pass(weights, options, tried, {}, 1);
    options.dropout = 0.5;
    GptStep step(weights, options);
    const auto judged = step.judge(tried.batch);
    EXPECT_LT(relative_error(judged.losses, plain.losses), 1e-2);
    // A rounded logit may change places with its neighbour now and then.
    EXPECT_LE((judged.hits.cpu() - plain.hits).abs().max().item<double>(), 4);
    EXPECT_GT(plain.hits.sum().item<double>(), 0);
  });
}

TEST(GptStep, SaysWhatDoesNotFit) {
  IN_CHILD({
    DeviceScope scope(step_gpu());
    const GptStepOptions options = small_options();
    GptStepWeights weights = random_gpt_weights({}, 1);
    const auto sentence = [](const std::function<void()>& work) -> std::string {
      try {
        work();
      } catch (const Error& error) {
        return error.what();
      }
      return "nothing";
    };
    GptStep step(weights, options);
    TriedBatch tried = random_gpt_batch({}, options, some_texts, some_sounds, 5, 2);
    const auto run = [&](const GptStepBatch& batch) {
      return step.run(batch, step_number(1), scale_of(1), 0);
    };
    GptStepBatch batch = tried.batch;
    batch.places -= 6;  // one too few
    EXPECT_TRUE(at::isnan(run(batch).losses).all().item<bool>());
    batch.places = 1401;
    EXPECT_NE(sentence([&] { run(batch); }).find("1401 places, does not fit"), std::string::npos);
    batch = tried.batch;
    batch.whole = batch.whole.cpu();
    EXPECT_EQ(sentence([&] { run(batch); }),
              "`whole` of a training step's batch must be [2] of Float on the GPU");
    GptStepWeights few = random_gpt_weights({.text_positions = 40}, 1);
    GptStep short_step(few, options);
    EXPECT_NE(sentence([&] {
                short_step.run(tried.batch, step_number(1), scale_of(1), 0);
              }).find("43 positions of text"),
              std::string::npos);
    GptStepWeights wrong = weights;
    wrong.blocks[1].qkv_bias.gradient = at::zeros({7}, weights.text_embedding.gradient.options());
    EXPECT_EQ(sentence([&] { GptStep(wrong, options); }),
              "the weight `qkv_bias` of a training step and its gradient must be [384]");
    wrong = weights;
    wrong.blocks[1].qkv_bias.weight =
        at::zeros({385}, weights.text_embedding.weight.options()).narrow(0, 1, 384);
    EXPECT_EQ(sentence([&] { GptStep(wrong, options); }),
              "the weight `qkv_bias` of a training step must begin at a multiple of 16 bytes");
    wrong = weights;
    wrong.heads = 3;
    EXPECT_NE(sentence([&] { GptStep(wrong, options); }).find("cannot have 3 heads"),
              std::string::npos);
    GptStepOptions none = options;
    none.longest = 0;
    EXPECT_NE(sentence([&] { GptStep(weights, none); }).find("rows of at most 0"),
              std::string::npos);
  });
}

TEST(GptAttention, IsSoftmaxOfScaledScoresForSequencesOfAllLengths) {
  IN_CHILD({
    DeviceScope scope(step_gpu());
    at::manual_seed(3);
    for (const int64_t head : {64, 40}) {
      const int64_t heads = 3;
      const std::vector<int64_t> lengths = {1, 0, 63, 64, 65, 2, 127, 632, 200, 128, 129, 0, 1000};
      std::vector<int64_t> starts = {0};
      for (const int64_t length : lengths) starts.push_back(starts.back() + length);
      const int64_t places = starts.back();
      const auto half = at::TensorOptions(at::kCUDA).dtype(at::kBFloat16);
      const at::Tensor qkv = at::randn({places, 3, heads, head}, half);
      const at::Tensor flow = at::randn({places, heads, head}, half);
      const PackedSequences sequences{at::tensor(starts, at::kInt).to(at::kCUDA), 1000};
      const at::Tensor out = at::full({places, heads, head}, NAN, half);
      const at::Tensor sums = at::full({heads, places}, NAN, half.dtype(at::kFloat));
      const at::Tensor dots = at::full_like(sums, NAN), gradient = at::full_like(qkv, NAN);
      GptAttention attention(heads, head, places, static_cast<int64_t>(lengths.size()));
      const auto stream = c10::cuda::getCurrentCUDAStream();
      attention.begin(sequences, places, stream);
      attention.forward(qkv, sequences, out, sums, stream);
      attention.backward(flow, qkv, out, sums, sequences, gradient, dots, stream);
      const at::Tensor again = at::full_like(qkv, NAN);
      attention.backward(flow, qkv, out, sums, sequences, again, dots, stream);
      EXPECT_TRUE(gradient.equal(again));
      for (size_t i = 0; i < lengths.size(); ++i) {
        if (lengths[i] == 0) continue;
        const auto part = [&](const at::Tensor& x) {
          return x.narrow(0, starts[i], lengths[i]).to(at::kFloat);
        };
        const at::Tensor leaf = part(qkv).detach().requires_grad_(true);
        const auto all = leaf.permute({1, 2, 0, 3}).unbind(0);
        const at::Tensor future = at::ones({lengths[i], lengths[i]}, half.dtype(at::kBool)).triu(1);
        const at::Tensor scores =
            at::matmul(all[0], all[1].transpose(1, 2)) / std::sqrt(static_cast<double>(head));
        const at::Tensor expected =
            at::matmul(at::softmax(scores.masked_fill(future, -INFINITY), -1), all[2])
                .transpose(0, 1);
        EXPECT_LT(relative_error(part(out), expected.detach()), 5e-3) << lengths[i];
        const auto grads = torch::autograd::grad({expected}, {leaf}, {part(flow)});
        for (int64_t k = 0; k < 3; ++k) {
          // Of a single place, queries and keys have no gradient but rounding.
          if (lengths[i] == 1 && k < 2) {
            EXPECT_LT(part(gradient).select(1, k).abs().max().item<double>(), 0.1);
            continue;
          }
          EXPECT_LT(relative_error(part(gradient).select(1, k), grads[0].select(1, k)),
                    lengths[i] == 2 ? 3e-2 : 1e-2)  // of two places little remains but rounding
              << lengths[i] << " of " << k << ", heads of " << head;
        }
      }
    }
  });
}

}  // namespace tandem
