#include "train/rules/lora.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/safetensors.h"
#include "models/xtts_narrow.h"
#include "nn/finite_differences.h"
#include "support/temporary_folder.h"
#include "tandem/error.h"

namespace tandem {

namespace {

using tests::narrow_config;
using tests::narrow_gpt;
using tests::values;

const GptLora::Options small_lora{.rank = 3, .alpha = 12};

GptLora moved_lora() {  // as after some steps
  GptLora lora = GptLora::make(narrow_config().gpt, small_lora, 5);
  lora.visit("", [](const std::string& name, at::Tensor& tensor) {
    if (name.ends_with("lora_b")) tensor.copy_(values(name, tensor.sizes().vec(), 0.1));
  });
  return lora;
}

at::Tensor lora_inputs() { return values("inputs", {2, 7, 40}); }

std::string lora_refusal(const TestFolder& folder, const NamedTensors& tensors,
                         const Metadata& metadata) {
  const std::string path = folder.write("bad.safetensors", format_safetensors(tensors, metadata));
  try {
    read_lora(path, narrow_config().gpt);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt) << error.what();
    const std::string sentence = error.what();
    EXPECT_TRUE(sentence.starts_with("`" + path + "`")) << sentence;
    return sentence.substr(path.size() + 2);
  }
  ADD_FAILURE() << "it was read";
  return "";
}

NamedTensors tensors_of(GptLora& lora) {
  NamedTensors out;
  lora.visit("gpt.", [&](const std::string& name, at::Tensor& t) { out.emplace_back(name, t); });
  return out;
}

}  // namespace

TEST(Lora, ChangesNothingAtTheStart) {
  const XttsGpt gpt = narrow_gpt();
  const GptLora lora = GptLora::make(gpt.size, small_lora, 5);
  const XttsGpt with = lora.applied_to(gpt);
  EXPECT_TRUE(at::equal(with.hidden(lora_inputs()), gpt.hidden(lora_inputs())));
  EXPECT_GT(lora.blocks[0].qkv.a.abs().sum().item<double>(), 0);
}

TEST(Lora, HasNamesAndShapesOfTheFourProducts) {
  GptLora lora = GptLora::make(narrow_config().gpt, small_lora, 5);
  std::map<std::string, std::vector<int64_t>> shapes;
  lora.visit("", [&](const std::string& name, at::Tensor& tensor) {
    shapes[name] = tensor.sizes().vec();
  });
  EXPECT_EQ(shapes.size(), 3u * 4 * 2);
  EXPECT_EQ(shapes.at("gpt.h.0.attn.c_attn.lora_a"), (Shape{40, 3}));
  EXPECT_EQ(shapes.at("gpt.h.0.attn.c_attn.lora_b"), (Shape{3, 120}));
  EXPECT_EQ(shapes.at("gpt.h.1.attn.c_proj.lora_b"), (Shape{3, 40}));
  EXPECT_EQ(shapes.at("gpt.h.2.mlp.c_fc.lora_b"), (Shape{3, 160}));
  EXPECT_EQ(shapes.at("gpt.h.2.mlp.c_proj.lora_a"), (Shape{160, 3}));
}

TEST(Lora, StartsTheSameFromTheSameSeed) {
  GptLora one = GptLora::make(narrow_config().gpt, small_lora, 5);
  GptLora same = GptLora::make(narrow_config().gpt, small_lora, 5);
  GptLora other = GptLora::make(narrow_config().gpt, small_lora, 6);
  EXPECT_TRUE(at::equal(one.blocks[1].expand.a, same.blocks[1].expand.a));
  EXPECT_FALSE(at::equal(one.blocks[1].expand.a, other.blocks[1].expand.a));
  EXPECT_FALSE(at::equal(one.blocks[0].expand.a, one.blocks[1].expand.a));
}

TEST(Lora, LearnsInItsAdditionsAlone) {
  XttsGpt gpt = narrow_gpt();
  gpt.visit("", [](const std::string&, at::Tensor& tensor) { tensor.requires_grad_(true); });
  GptLora lora = moved_lora();
  lora.visit("", [](const std::string&, at::Tensor& tensor) { tensor.requires_grad_(true); });
  lora.applied_to(gpt).hidden(lora_inputs()).pow(2).mean().backward();
  lora.visit("", [](const std::string& name, at::Tensor& tensor) {
    ASSERT_TRUE(tensor.grad().defined()) << name;
    EXPECT_GT(tensor.grad().abs().sum().item<double>(), 0) << name;
  });
  for (const XttsGptBlock& block : gpt.blocks) EXPECT_FALSE(block.qkv_weight.grad().defined());
}

TEST(Lora, HasTheGradientOfFiniteDifferences) {
  XttsGpt gpt = narrow_gpt();
  const auto to_double = [](const std::string&, at::Tensor& tensor) {
    tensor = tensor.to(at::kDouble);
  };
  gpt.visit("", to_double);
  GptLora lora = moved_lora();
  lora.visit("", to_double);
  const at::Tensor inputs = lora_inputs().to(at::kDouble);
  const at::Tensor weights = values("loss", {2, 7, 40}).to(at::kDouble);
  const auto loss = [&] { return (lora.applied_to(gpt).hidden(inputs) * weights).sum(); };
  lora.visit("", [](const std::string&, at::Tensor& tensor) { tensor.requires_grad_(true); });
  loss().backward();
  lora.visit("", [&](const std::string& name, at::Tensor& tensor) {
    for (const int64_t place : {int64_t{0}, tensor.numel() - 1}) {
      const double expected = tests::slope_at(tensor, place, loss, 1e-5);
      EXPECT_NEAR(tensor.grad().view({-1})[place].item<double>(), expected,
                  1e-6 * std::max(1.0, std::abs(expected)))
          << name << " at " << place;
    }
  });
}

TEST(Lora, GivesTheSameGradientsFromThatOfTheWeight) {
  const GptLora lora = moved_lora();
  const LoraAddition& own = lora.blocks[0].expand;
  const at::Tensor weight = values("weight", {40, 160});
  const at::Tensor outside = values("outside", {40, 160});
  LoraAddition learned{own.a.clone().requires_grad_(true), own.b.clone().requires_grad_(true)};
  (lora.effective(weight, learned) * outside).sum().backward();
  at::Tensor a = at::ones_like(own.a), b = at::ones_like(own.b);
  lora.add_gradients(own, outside, a, b);
  EXPECT_TRUE(at::allclose(a - 1, learned.a.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(b - 1, learned.b.grad(), 1e-4, 1e-5));
}

TEST(Lora, AddsTheGradientsOfFiniteDifferences) {
  const GptLora lora = moved_lora();
  const auto of = [](const std::string& name, const Shape& shape) {
    return values(name, shape, 0.5).to(at::kDouble);
  };
  const LoraAddition added{of("a", {40, 3}), of("b", {3, 160})};
  const at::Tensor weight = of("weight", {40, 160}), outside = of("outside", {40, 160});
  const auto loss = [&] { return (lora.effective(weight, added).square() * outside).sum(); };
  at::Tensor a = at::zeros_like(added.a), b = at::zeros_like(added.b);
  lora.add_gradients(added, 2 * lora.effective(weight, added) * outside, a, b);
  tests::expect_gradient("a", added.a, a, loss);
  tests::expect_gradient("b", added.b, b, loss);
}

TEST(Lora, SaysTheSameWhenMerged) {
  XttsGpt gpt = narrow_gpt();
  const at::Tensor before = gpt.hidden(lora_inputs());
  const GptLora lora = moved_lora();
  const at::Tensor apart = lora.applied_to(gpt).hidden(lora_inputs());
  lora.merge_into(gpt);
  EXPECT_TRUE(at::equal(gpt.hidden(lora_inputs()), apart));
  EXPECT_FALSE(at::allclose(before, apart, 1e-2, 1e-2));
  // scale is alpha / rank
  const at::Tensor by_hand =
      narrow_gpt().blocks[0].qkv_weight + 4 * at::mm(lora.blocks[0].qkv.a, lora.blocks[0].qkv.b);
  EXPECT_TRUE(at::allclose(gpt.blocks[0].qkv_weight, by_hand, 1e-5, 1e-6));
}

TEST(Lora, ComesBackFromItsFile) {
  const TestFolder folder;
  GptLora lora = moved_lora();
  const auto path = folder / lora_file;
  write_lora(lora, path);
  GptLora again = read_lora(path, narrow_config().gpt);
  EXPECT_EQ(again.options.rank, 3);
  EXPECT_EQ(again.options.alpha, 12);
  NamedTensors first = tensors_of(lora), second = tensors_of(again);
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].first, second[i].first);
    EXPECT_TRUE(at::equal(first[i].second, second[i].second)) << first[i].first;
  }
}

TEST(Lora, RefusesAFileThatDoesNotFit) {
  const TestFolder folder;
  GptLora lora = moved_lora();
  const Metadata good{{"rank", "3"}, {"alpha", "12"}};
  NamedTensors tensors = tensors_of(lora);
  EXPECT_EQ(lora_refusal(folder, tensors, {{"rank", "3"}}),
            " holds no low-rank additions: its metadata has no `alpha`");
  EXPECT_EQ(lora_refusal(folder, tensors, {{"rank", "-3"}, {"alpha", "x"}}),
            " has rank `-3` and alpha `x` in its metadata; expected a whole number from 1 and a "
            "number above 0");
  EXPECT_NE(
      lora_refusal(folder, tensors, {{"rank", "4"}, {"alpha", "12"}}).find("expected [40, 4]"),
      std::string::npos);
  NamedTensors more = tensors;
  more.emplace_back("gpt.gpt.h.3.attn.c_attn.lora_a", at::zeros({40, 3}));
  EXPECT_EQ(lora_refusal(folder, more, good),
            " holds `gpt.gpt.h.3.attn.c_attn.lora_a`, which this GPT of 3 layers has no place for");
  NamedTensors fewer = tensors;
  fewer.erase(fewer.begin());
  EXPECT_NE(lora_refusal(folder, fewer, good).find("`gpt.gpt.h.0.attn.c_attn.lora_a` missing"),
            std::string::npos);
}

}  // namespace tandem
