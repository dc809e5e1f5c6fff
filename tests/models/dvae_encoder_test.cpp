#include "models/xtts/dvae_encoder.h"

#include <gtest/gtest.h>

#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_writing.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {
const std::string fixture = TANDEM_SOURCE_DIR "/tests/models/xtts/fixtures/dvae.safetensors";
}

// The fixture is a narrow DVAE of coqui-tts with mels and its own codes for them.
TEST(DvaeEncoder, GivesTheCodesOfCoqui) {
  const DvaeEncoder encoder = DvaeEncoder::load(fixture);
  EXPECT_EQ(encoder.mels(), 80);
  EXPECT_EQ(encoder.strided.size(), 2u);
  EXPECT_EQ(encoder.residual.size(), 3u);
  auto tensors = read_safetensors(fixture).tensors;
  for (const int64_t frames : {1, 7, 49}) {
    const std::string of = std::to_string(frames);
    const at::Tensor codes = encoder.codes(tensors.at("test.mels." + of));
    EXPECT_EQ(codes.size(1), encoder.codes_of(frames));
    EXPECT_TRUE(at::equal(codes, tensors.at("test.codes." + of))) << frames << " frames";
  }
}

TEST(DvaeEncoder, OfCoquiTakesTheMelStatisticsBesideIt) {
  const TestFolder folder;
  std::vector<PthItem> items;
  for (const auto& [name, tensor] : read_safetensors(fixture).tensors) {
    if (name.starts_with("encoder.") || name.starts_with("codebook."))
      items.push_back({{name}, TensorToWrite::of(tensor)});
  }
  write_pth(folder / "dvae.pth", items);
  const std::string path = (folder / "dvae.pth").string();
  const Thrown thrown = thrown_by([&] { DvaeEncoder::load(path); });
  EXPECT_EQ(thrown.kind, "io");
  EXPECT_TRUE(contains(thrown.sentence, "no mel_stats.pth")) << thrown.sentence;
  const at::Tensor stats = at::linspace(1, 3, 80);
  write_pth(folder / "mel_stats.pth", {{{}, TensorToWrite::of(stats)}});
  EXPECT_TRUE(at::equal(DvaeEncoder::load(path).mel_stats, stats));
  write_pth(folder / "mel_stats.pth",
            {{{"a"}, TensorToWrite::of(stats)}, {{"b"}, TensorToWrite::of(stats)}});
  EXPECT_EQ(thrown_by([&] { DvaeEncoder::load(path); }).kind, "corrupt");
}

TEST(DvaeEncoder, AFileThatIsNoneSaysWhatIsMissing) {
  const TestFolder folder;
  const std::string path = (folder / "x.safetensors").string();
  put(path, format_safetensors({{"something", at::ones({2})}}, {}));
  const Thrown thrown = thrown_by([&] { DvaeEncoder::load(path); });
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_TRUE(contains(thrown.sentence, "`encoder.0.0.weight`")) << thrown.sentence;
  EXPECT_TRUE(contains(thrown.sentence, "`codebook.embed`")) << thrown.sentence;
}

}  // namespace tandem::tests
