#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/safetensors_bytes.h"
#include "nn/tensors.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

SafetensorsFile round_trip(const NamedTensors& tensors, const Metadata& metadata = {}) {
  return parse_safetensors(format_safetensors(tensors, metadata), "test");
}

nlohmann::ordered_json header_of(const std::string& file) {
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  return nlohmann::ordered_json::parse(file.substr(8, length));
}

constexpr at::ScalarType all_types[] = {at::kBool,  at::kByte,  at::kChar, at::kShort,
                                        at::kInt,   at::kLong,  at::kHalf, at::kBFloat16,
                                        at::kFloat, at::kDouble};

}  // namespace

TEST(Safetensors, KeepsEveryTypeBitForBit) {
  NamedTensors tensors;
  for (const at::ScalarType type : all_types) {
    tensors.emplace_back(c10::toString(type), at::arange(-3, 9).view({3, 4}).to(type));
  }
  const SafetensorsFile file = round_trip(tensors);
  ASSERT_EQ(file.tensors.size(), std::size(all_types));
  for (const auto& [name, tensor] : tensors) {
    EXPECT_TRUE(same_bits(file.tensors.at(name), tensor)) << name;
  }
}

TEST(Safetensors, KeepsBitsThatAreNoNumbers) {
  const at::Tensor odd = at::tensor({0x7fc00001, 0x7f800000, -0x800000, 1, INT32_MIN}, at::kInt);
  const at::Tensor floats = odd.view(at::kFloat);  // NaN with a payload, infinities, tiny, -0
  EXPECT_TRUE(same_bits(round_trip({{"x", floats}}).tensors.at("x"), floats));
}

TEST(Safetensors, KeepsScalarsAndTensorsWithoutElements) {
  const at::Tensor scalar = at::full({}, 2.5), none = at::empty({0}), some = at::empty({3, 0, 2});
  const SafetensorsFile file = round_trip({{"scalar", scalar}, {"none", none}, {"some", some}});
  EXPECT_TRUE(same_bits(file.tensors.at("scalar"), scalar));
  EXPECT_TRUE(same_bits(file.tensors.at("none"), none));
  EXPECT_TRUE(same_bits(file.tensors.at("some"), some));
}

TEST(Safetensors, WritesViewsInTheOrderTheyShow) {
  const at::Tensor whole = at::arange(24, at::kFloat).view({4, 6});
  const at::Tensor turned = whole.t(), part = whole.slice(1, 1, 6, 2),
                   spread = whole[0].expand({3, 6});
  const SafetensorsFile file = round_trip({{"turned", turned}, {"part", part}, {"spread", spread}});
  EXPECT_TRUE(same_bits(file.tensors.at("turned"), turned));
  EXPECT_TRUE(same_bits(file.tensors.at("part"), part));
  EXPECT_TRUE(same_bits(file.tensors.at("spread"), spread));
}

TEST(Safetensors, WritesParametersWithoutTheirGradient) {
  const at::Tensor parameter = at::ones({2}).requires_grad_(true);
  EXPECT_FALSE(round_trip({{"p", parameter}}).tensors.at("p").requires_grad());
}

TEST(Safetensors, KeepsMetadata) {
  const Metadata metadata{{"format", "pt"}, {"note", "line\nbreak \"quote\" é"}, {"", ""}};
  EXPECT_EQ(round_trip({{"x", at::ones({1})}}, metadata).metadata, metadata);
  EXPECT_EQ(round_trip({}, metadata).metadata, metadata);
}

TEST(Safetensors, AFileWithoutTensorsIsAFile) {
  EXPECT_TRUE(round_trip({}).tensors.empty());
  EXPECT_EQ(format_safetensors({}, {}), file_of("{}      "));
}

TEST(Safetensors, AlignsWiderTypesFirstAndPadsTheHeader) {
  const std::string file = format_safetensors({{"a", at::zeros({3}, at::kByte)},
                                               {"b", at::zeros({1}, at::kHalf)},
                                               {"d", at::zeros({1}, at::kDouble)},
                                               {"c", at::zeros({1}, at::kDouble)}},
                                              {});
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const auto header = header_of(file);
  std::vector<std::string> names;
  for (const auto& [name, value] : header.items()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"c", "d", "b", "a"}));
  EXPECT_EQ(header["b"]["data_offsets"], nlohmann::json({16, 18}));
}

TEST(Safetensors, TheSameTensorsMakeTheSameBytes) {
  const at::Tensor x = at::ones({2}), y = at::zeros({3}, at::kLong);
  EXPECT_EQ(format_safetensors({{"x", x}, {"y", y}}, {}),
            format_safetensors({{"y", y}, {"x", x}}, {}));
}

TEST(Safetensors, RefusesToWriteATypeWithoutAName) {
  const Thrown thrown = thrown_by([] {
    format_safetensors({{"x", at::zeros({1}, at::kComplexFloat)}}, {});
  });
  EXPECT_EQ(thrown.kind, "internal");
  EXPECT_EQ(thrown.sentence, "safetensors has no name for the type ComplexFloat");
}

TEST(Safetensors, ReadsFilesAndNamesThoseItCannot) {
  const TestFolder folder;
  const auto path = folder / "a.safetensors";
  write_file_atomically(path, format_safetensors({{"x", at::ones({2})}}, {}));
  EXPECT_TRUE(same_bits(read_safetensors(path).tensors.at("x"), at::ones({2})));
  EXPECT_EQ(thrown_by([&] { read_safetensors(folder / "b"); }).kind, "io");
  put(path, "short");
  const Thrown thrown = thrown_by([&] { read_safetensors(path); });
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_TRUE(
      thrown.sentence.starts_with("`" + path.string() + "` is not a valid safetensors file"));
  EXPECT_EQ(thrown.hint,
            "the file is damaged or incomplete; use another checkpoint or copy it again");
}

}  // namespace tandem::tests
