#include "checkpoint/tensor_writing.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "checkpoint/crc32.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_file.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

std::map<std::string, at::Tensor> some_tensors() {
  return {{"a", at::arange(6, at::kFloat).view({2, 3})},
          {"b", at::ones({3}, at::kBFloat16)},
          {"c", at::empty({0, 4})},
          {"d", at::ones({}, at::kLong)},
          {"e", at::ones({2}, at::kBool)},
          {"f", at::ones({2, 2}, at::kHalf).t()}};
}

bool only_file(const TestFolder& folder, const std::string& name) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    count += entry.path().filename() != name;
  return count == 0;
}

}  // namespace

TEST(Crc32, IsThatOfZipFiles) {
  EXPECT_EQ(crc32(""), 0u);
  EXPECT_EQ(crc32("123456789"), 0xcbf43926u);
  EXPECT_EQ(crc32(std::string(1000, 'a')), 0x9a38da03u);
}

TEST(WritePth, GivesBackWhatWasWritten) {
  const TestFolder folder;
  std::vector<PthItem> items;
  for (const auto& [name, tensor] : some_tensors())
    items.push_back({.path = {"model", name}, .value = TensorToWrite::of(tensor)});
  items.push_back({.path = {"step"}, .value = int64_t{1} << 40});
  items.push_back({.path = {"small"}, .value = int64_t{-3}});
  items.push_back({.path = {"loss"}, .value = 0.125});
  items.push_back({.path = {"name"}, .value = std::string("Ünï")});
  items.push_back({.path = {"yes"}, .value = true});
  items.push_back({.path = {"none"}, .value = std::monostate{}});
  uint64_t written = 0;
  write_pth(folder / "x.pth", items, [&](uint64_t bytes) { written += bytes; });
  EXPECT_EQ(written, 24u + 6 + 0 + 8 + 2 + 8);
  EXPECT_TRUE(only_file(folder, "x.pth"));
  const auto file = open_tensor_file(folder / "x.pth");
  EXPECT_EQ(file->format(), "pth zip");
  for (const auto& [name, tensor] : some_tensors()) {
    EXPECT_EQ(file->read("model/" + name).scalar_type(), tensor.scalar_type());
    EXPECT_TRUE(at::equal(file->read("model/" + name), tensor)) << name;
  }
  EXPECT_EQ(file->metadata().at("step"), "1099511627776");
  EXPECT_EQ(file->metadata().at("small"), "-3");
  EXPECT_EQ(file->metadata().at("loss"), "0.125");
  EXPECT_EQ(file->metadata().at("name"), "Ünï");
  EXPECT_EQ(file->metadata().at("yes"), "True");
  EXPECT_EQ(file->metadata().at("none"), "None");
}

TEST(WritePth, WritesOneBareTensor) {
  const TestFolder folder;
  write_pth(folder / "x.pth", {{.path = {}, .value = TensorToWrite::of(at::ones({80}))}});
  EXPECT_EQ(open_tensor_file(folder / "x.pth")->read("tensor").numel(), 80);
}

TEST(WritePth, AlignsStoragesTo64Bytes) {
  const TestFolder folder;
  std::vector<PthItem> items;
  for (int i = 0; i < 5; ++i) {
    const at::Tensor tensor = at::empty({16 + i}, at::kByte);
    std::memset(tensor.data_ptr(), 'A' + i, static_cast<size_t>(tensor.numel()));
    items.push_back(
        {.path = {std::string(1, static_cast<char>('a' + i))}, .value = TensorToWrite::of(tensor)});
  }
  write_pth(folder / "x.pth", items);
  const std::string bytes = contents(folder / "x.pth");
  for (int i = 0; i < 5; ++i) {
    const size_t place = bytes.find(std::string(16, static_cast<char>('A' + i)));
    ASSERT_NE(place, bytes.npos);
    EXPECT_EQ(place % 64, 0u);
  }
}

TEST(WriteSafetensors, IsTheSameFileAsInMemory) {
  const TestFolder folder;
  std::map<std::string, TensorToWrite> tensors;
  NamedTensors named;
  for (const auto& [name, tensor] : some_tensors()) {
    tensors.emplace(name, TensorToWrite::of(tensor));
    named.emplace_back(name, tensor);
  }
  write_safetensors(folder / "x.safetensors", tensors, {{"k", "v"}});
  EXPECT_EQ(contents(folder / "x.safetensors"), format_safetensors(named, {{"k", "v"}}));
  EXPECT_TRUE(only_file(folder, "x.safetensors"));
}

TEST(TensorWriting, AFailureLeavesNothingBehind) {
  const TestFolder folder;
  put(folder / "x.pth", "old");
  const TensorToWrite broken{
      .type = at::kFloat, .shape = {2}, .make = [] { return at::ones({3}); }};
  EXPECT_EQ(
      thrown_by([&] { write_pth(folder / "x.pth", {{.path = {"a"}, .value = broken}}); }).kind,
      "internal");
  EXPECT_EQ(thrown_by([&] {
              write_safetensors(folder / "x.pth", {{"a", broken}}, {});
            }).kind,
            "internal");
  EXPECT_EQ(contents(folder / "x.pth"), "old");
  EXPECT_TRUE(only_file(folder, "x.pth"));
}

TEST(TensorWriting, SaysWhichFileCannotBeWritten) {
  const TestFolder folder;
  const Thrown thrown = thrown_by([&] { write_pth(folder / "no/x.pth", {}); });
  EXPECT_EQ(thrown.kind, "io");
  EXPECT_TRUE(contains(thrown.sentence, "no/x.pth`: No such file or directory")) << thrown.sentence;
}

}  // namespace tandem::tests
