#include "models/xtts/dvae.h"

#include <gtest/gtest.h>

#include "models/xtts_narrow.h"
#include "nn/tensors.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

NamedWeights narrow_weights() {
  NamedWeights named;
  Dvae dvae;
  dvae.encoder.size = {.widths = {12, 24}, .vector = 12, .codes = 48};
  dvae.list("", into(named));
  return named;
}

Dvae narrow_dvae() {
  Weights weights(narrow_weights());
  return Dvae::load(weights, "");
}

at::Tensor mels() { return values("mels", {2, 80, 24}, 2, -1); }

std::string saved(const TestFolder& folder, const std::string& prefix) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : narrow_weights()) tensors.emplace_back(prefix + name, tensor);
  const std::string path = (folder / "dvae.safetensors").string();
  put(path, format_safetensors(tensors, {}));
  return path;
}

}  // namespace

TEST(Dvae, EncodesDecodesAndJudgesAsCoqui) {
  const at::NoGradGuard no_grad;
  auto expected = xtts_fixture("dvae_whole");
  const Dvae dvae = narrow_dvae();
  const Dvae::Reconstruction found = dvae.reconstruct(mels());
  EXPECT_TRUE(at::equal(found.codes, expected.at("codes")));
  EXPECT_LT(largest_difference(found.mels, expected.at("mels")), 1e-4);
  EXPECT_NEAR(number(found.loss), number(expected.at("loss")), 1e-4);
  EXPECT_NEAR(number(found.commitment), number(expected.at("commitment")), 1e-4);
  EXPECT_LT(largest_difference(dvae.decode(found.codes), expected.at("decoded")), 1e-4);
}

TEST(Dvae, MelStatsDivideOnTheWayInAndMultiplyOnTheWayOut) {
  const at::NoGradGuard no_grad;
  Dvae dvae = narrow_dvae();
  const at::Tensor plain = dvae.decode(dvae.encoder.codes(mels()));
  const at::Tensor stats = values("mel_stats", {80}, 0.2, 1);
  dvae.encoder.mel_stats = stats;
  const at::Tensor codes = dvae.encoder.codes(mels() * stats.view({1, 80, 1}));
  EXPECT_LT(largest_difference(dvae.decode(codes), plain * stats.view({1, 80, 1})), 1e-4);
}

TEST(Dvae, GradientsPassThroughTheQuantiser) {
  Dvae dvae = narrow_dvae();
  dvae.visit("", [](const std::string& name, at::Tensor& tensor) {
    if (name != "codebook.embed") tensor.requires_grad_(true);
  });
  const auto found = dvae.reconstruct(mels());
  (found.loss + found.commitment).backward();
  dvae.visit("", [](const std::string& name, at::Tensor& tensor) {
    if (name == "codebook.embed") return;
    ASSERT_TRUE(tensor.grad().defined()) << name;
    EXPECT_GT(number(tensor.grad().norm()), 0) << name;
  });
}

TEST(Dvae, ReconstructsWholeCodesOnly) {
  const Thrown thrown = thrown_by([&] { narrow_dvae().reconstruct(values("m", {1, 80, 23})); });
  EXPECT_EQ(thrown.kind, "data");
  EXPECT_EQ(thrown.sentence, "23 frames cannot be reconstructed; expected a multiple of 4");
}

TEST(Dvae, IsFoundInATrainersCheckpointToo) {
  const TestFolder folder;
  for (const char* prefix : {"", "model/dvae."}) {
    const std::string path = saved(folder, prefix);
    EXPECT_TRUE(
        at::equal(Dvae::load(path).encoder.codes(mels()), xtts_fixture("dvae_whole").at("codes")));
    EXPECT_TRUE(
        at::equal(DvaeEncoder::load(path).codes(mels()), xtts_fixture("dvae_whole").at("codes")));
  }
}

TEST(Dvae, WithoutItsDecoderIsAnEncoderOnly) {
  const TestFolder folder;
  NamedTensors tensors;
  for (const auto& [name, tensor] : narrow_weights())
    if (!name.starts_with("decoder.5")) tensors.emplace_back(name, tensor);
  const std::string path = (folder / "half.safetensors").string();
  put(path, format_safetensors(tensors, {}));
  const Thrown thrown = thrown_by([&] { Dvae::load(path); });
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_TRUE(contains(thrown.sentence, "`decoder.5.0.conv.weight`, `decoder.5.0.conv.bias`"))
      << thrown.sentence;
  EXPECT_EQ(DvaeEncoder::load(path).codes_of(24), 6);
}

TEST(Dvae, OfTheReleasedSizeHasItsParameters) {
  EXPECT_EQ(Dvae::count_parameters(XttsConfig{}), 51567184);
}

}  // namespace tandem::tests
