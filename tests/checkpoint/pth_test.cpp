// Files that PyTorch wrote; see tests/parity/make_pth_fixtures.py.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_file.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

std::string fixture(const std::string& name) {
  return TANDEM_SOURCE_DIR "/tests/checkpoint/fixtures/" + name;
}

// All tensors have the names, types, shapes and values that PyTorch itself gave them.
void expect_same(const std::string& name, const std::string& format) {
  const auto file = open_tensor_file(fixture(name + ".pth"));
  EXPECT_EQ(file->format(), format);
  const auto expected = read_safetensors(fixture(name + ".safetensors")).tensors;
  EXPECT_EQ(file->entries().size(), expected.size());
  for (const auto& [tensor_name, wanted] : expected) {
    ASSERT_TRUE(file->has(tensor_name)) << tensor_name;
    const at::Tensor found = file->read(tensor_name);
    EXPECT_EQ(found.scalar_type(), wanted.scalar_type()) << tensor_name;
    EXPECT_TRUE(found.is_contiguous()) << tensor_name;
    EXPECT_TRUE(at::equal(found, wanted)) << tensor_name;
  }
  for (const TensorEntry& entry : file->entries()) {
    EXPECT_EQ(entry.shape, expected.at(entry.name).sizes().vec()) << entry.name;
    EXPECT_EQ(entry.type, expected.at(entry.name).scalar_type()) << entry.name;
    EXPECT_EQ(entry.bytes(), static_cast<int64_t>(expected.at(entry.name).nbytes())) << entry.name;
  }
}

}  // namespace

TEST(Pth, ReadsEveryKindOfTensorAndView) { expect_same("kinds", "pth zip"); }
TEST(Pth, ReadsTheFormatOfProtocol5) { expect_same("kinds_protocol5", "pth zip"); }
TEST(Pth, ReadsTheFormatFromBeforeZip) { expect_same("kinds_legacy", "pth legacy"); }
TEST(Pth, ReadsATrainersCheckpoint) { expect_same("trainer", "pth zip"); }
TEST(Pth, ReadsOneBareTensor) {
  expect_same("bare", "pth zip");
  expect_same("bare_legacy", "pth legacy");
}

TEST(Pth, LeavesCoquisObjectOfSettingsUnread) {
  expect_same("coqui", "pth zip");
  expect_same("coqui_legacy", "pth legacy");
  for (const char* name : {"coqui.pth", "coqui_legacy.pth"}) {
    const auto file = open_tensor_file(fixture(name));
    EXPECT_EQ(file->metadata().at("config"), "<TTS.tts.configs.xtts_config.XttsConfig, not read>");
  }
}

TEST(Pth, TellsNumbersTextsAndNames) {
  const auto file = open_tensor_file(fixture("kinds.pth"));
  const auto& told = file->metadata();
  EXPECT_EQ(told.at("step"), "12");
  EXPECT_EQ(told.at("date"), "2026-11-15");
  EXPECT_EQ(told.at("loss"), "0.25");
  EXPECT_EQ(told.at("none"), "None");
  EXPECT_EQ(told.at("yes"), "True");
  EXPECT_EQ(told.at("size/1"), "3");
  EXPECT_EQ(told.at("device"), "<torch.device, not read>");
  EXPECT_EQ(told.at("dtype"), "torch.float16");
  EXPECT_EQ(told.at("long"), "[40 values]");
}

TEST(Pth, KeepsTheOrderOfTheFile) {
  const auto file = open_tensor_file(fixture("kinds.pth"));
  EXPECT_EQ(file->entries()[0].name, "model/float");
  EXPECT_EQ(file->entries()[1].name, "model/double");
  EXPECT_EQ(file->entries().back().name, "7");
}

TEST(Pth, AWholeModuleHasNoTensorsButSaysWhatItIs) {
  const auto file = open_tensor_file(fixture("module.pth"));
  EXPECT_TRUE(file->entries().empty());
  EXPECT_EQ(file->metadata().at("object"), "<torch.nn.modules.linear.Linear, not read>");
}

TEST(Pth, ReadsRareTypesAndPassesOverUnknownOnes) {
  const auto file = open_tensor_file(fixture("rare.pth"));
  EXPECT_EQ(file->read("complex").scalar_type(), at::kComplexFloat);
  EXPECT_EQ(file->read("unsigned").scalar_type(), at::kUInt16);
  EXPECT_FALSE(file->has("quantised"));
  EXPECT_EQ(file->metadata().at("quantised"), "<torch._utils._rebuild_qtensor, not read>");
}

TEST(TensorFile, ReadsSafetensorsOneByOne) {
  const auto file = open_tensor_file(fixture("kinds.safetensors"));
  EXPECT_EQ(file->format(), "safetensors");
  const auto expected = read_safetensors(fixture("kinds.safetensors")).tensors;
  EXPECT_EQ(file->entries().size(), expected.size());
  for (const TensorEntry& entry : file->entries())
    EXPECT_TRUE(at::equal(file->read(entry.name), expected.at(entry.name))) << entry.name;
}

TEST(TensorFile, ABoolIsTrueForAnyByteButZero) {
  const std::string header = R"({"b":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})";
  const uint64_t length = header.size();
  const std::string bytes = std::string(reinterpret_cast<const char*>(&length), 8) + header +
                            std::string("\0\x02\xff", 3);
  const at::Tensor read = open_tensor_bytes(bytes, "f")->read("b");
  EXPECT_EQ(read.scalar_type(), at::kBool);
  EXPECT_EQ(read.sum().item<int64_t>(), 2);
  EXPECT_EQ(static_cast<const unsigned char*>(read.data_ptr())[2], 1);
}

TEST(TensorFile, RefusesWhatItCannotOpen) {
  const TestFolder folder;
  const Thrown none = thrown_by([&] { open_tensor_file(folder / "none.pth"); });
  EXPECT_EQ(none.kind, "io");
  EXPECT_TRUE(contains(none.sentence, "none.pth`: No such file")) << none.sentence;
  const Thrown directory = thrown_by([&] { open_tensor_file(folder.path()); });
  EXPECT_EQ(directory.kind, "io");
  EXPECT_TRUE(contains(directory.sentence, "Is a directory")) << directory.sentence;
  const Thrown device = thrown_by([&] { open_tensor_file("/dev/zero"); });
  EXPECT_EQ(device.kind, "io");
  EXPECT_EQ(device.sentence, "cannot read `/dev/zero`: it is not a file");
  for (const char* bytes : {"", "PK", "not a model at all", "{\"a\": 1}", "RIFF....WAVEfmt "}) {
    const Thrown other = thrown_by([&] { open_tensor_bytes(bytes, "f"); });
    EXPECT_EQ(other.kind, "corrupt");
    EXPECT_EQ(other.sentence, "`f` is neither a safetensors nor a .pth file");
  }
}

TEST(TensorFile, ANameItDoesNotListIsAMistakeOfOurs) {
  const auto file = open_tensor_file(fixture("bare.pth"));
  EXPECT_EQ(thrown_by([&] { file->read("other"); }).kind, "internal");
}

}  // namespace tandem::tests
