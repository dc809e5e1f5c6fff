// Where the tensors of a file lie, and how large they claim to be.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <random>

#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_bytes.h"
#include "nn/tensors.h"
#include "tandem/error.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

std::string refusal(const std::string& entries, const std::string& data = "12345678") {
  const Thrown thrown =
      thrown_by([&] { parse_safetensors(file_of("{" + entries + "}", data), "f"); });
  EXPECT_EQ(thrown.kind, "corrupt") << thrown.sentence;
  const size_t colon = thrown.sentence.find(": ");
  return thrown.sentence.substr(colon == std::string::npos ? 0 : colon + 2);
}

std::string bytes_at(const std::string& name, const std::string& offsets, int count) {
  return entry(name, "U8", "[" + std::to_string(count) + "]", offsets);
}

long peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

TEST(SafetensorsLayout, OffsetsMustLieInside) {
  const std::string outside = "the entry of tensor `a` lies outside the file";
  EXPECT_EQ(refusal(bytes_at("a", "[0,9]", 9)), outside);
  EXPECT_EQ(refusal(bytes_at("a", "[8,0]", 8)), outside);
  EXPECT_EQ(refusal(bytes_at("a", "[0,18446744073709551615]", 8)), outside);
  for (const char* offsets : {"[-8,0]", "[0,8.0]", "[0]", "[0,4,8]", "8", "[\"0\",8]", "[0,1e1]"})
    EXPECT_EQ(refusal(bytes_at("a", offsets, 8)),
              "the entry of tensor `a` has no proper data_offsets")
        << offsets;
}

TEST(SafetensorsLayout, SizesMustFitShapeAndType) {
  const std::string sentence =
      "the entry of tensor `a` has a size that does not fit its shape and dtype";
  EXPECT_EQ(refusal(bytes_at("a", "[0,8]", 7)), sentence);
  EXPECT_EQ(refusal(entry("a", "F32", "[8]", "[0,8]")), sentence);
  EXPECT_EQ(refusal(entry("a", "F32", "[]", "[0,8]")), sentence);
  EXPECT_EQ(refusal(entry("a", "F32", "[0]", "[0,8]")), sentence);
}

TEST(SafetensorsLayout, HolesAreRefused) {
  EXPECT_EQ(refusal(bytes_at("a", "[1,8]", 7)),
            "tensor `a` begins at 1 where 0 was expected (a hole or an overlap)");
  EXPECT_EQ(refusal(bytes_at("a", "[0,3]", 3) + "," + bytes_at("b", "[4,8]", 4)),
            "tensor `b` begins at 4 where 3 was expected (a hole or an overlap)");
}

TEST(SafetensorsLayout, OverlapsAreRefused) {
  EXPECT_EQ(refusal(bytes_at("a", "[0,5]", 5) + "," + bytes_at("b", "[4,8]", 4)),
            "tensor `b` begins at 4 where 5 was expected (a hole or an overlap)");
  EXPECT_EQ(refusal(bytes_at("a", "[0,8]", 8) + "," + bytes_at("b", "[0,8]", 8)),
            "tensor `b` begins at 0 where 8 was expected (a hole or an overlap)");
}

TEST(SafetensorsLayout, TheLastTensorMustEndTheFile) {
  EXPECT_EQ(refusal(bytes_at("a", "[0,7]", 7)), "its tensors end at 7, but the data has 8 bytes");
  EXPECT_EQ(refusal(""), "its tensors end at 0, but the data has 8 bytes");
}

TEST(SafetensorsLayout, OrderInTheHeaderDoesNotMatter) {
  const std::string header = "{" + bytes_at("late", "[4,8]", 4) + "," +
                             bytes_at("none", "[4,4]", 0) + "," + bytes_at("early", "[0,4]", 4) +
                             "}";
  const SafetensorsFile file = parse_safetensors(file_of(header, "abcdefgh"), "f");
  EXPECT_EQ(file.tensors.at("early")[0].item<int>(), 'a');
  EXPECT_EQ(file.tensors.at("late")[3].item<int>(), 'h');
  EXPECT_EQ(file.tensors.at("none").numel(), 0);
}

TEST(SafetensorsLayout, ShapesWhoseSizeOverflowsAreRefused) {
  const std::string sentence = "the entry of tensor `a` has a shape too large to exist";
  for (const char* shape :
       {"[4294967296,4294967296]", "[9223372036854775807,2,4]", "[2305843009213693952,2]",
        "[4294967296,4294967296,0]", "[0,4294967296,4294967296]",
        "[0,9223372036854775807,9223372036854775807]", "[9223372036854775807,0]"})
    EXPECT_EQ(refusal(entry("a", "F64", shape, "[0,8]")), sentence) << shape;
  EXPECT_EQ(refusal(entry("a", "F64", "[0,9223372036854775807]", "[0,0]"), ""), sentence);
}

TEST(SafetensorsLayout, ClaimedSizesTakeNoMemory) {
  const long before = peak_kib();
  refusal(bytes_at("a", "[0,1099511627776]", 8));
  refusal(entry("a", "F64", "[137438953472]", "[0,1099511627776]"));
  thrown_by([] { parse_safetensors(with_length(100'000'000, "{}"), "f"); });
  EXPECT_LT(peak_kib() - before, 64 << 10);
}

TEST(SafetensorsLayout, ManyTensorsAreReadInTheTimeOfTheirNumber) {
  std::string header = "{";
  for (int i = 0; i < 200'000; ++i) {
    header += (i ? "," : "") + bytes_at("blocks." + std::to_string(i) + ".weight", "[0,0]", 0);
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(parse_safetensors(file_of(header + "}"), "f").tensors.size(), 200'000u);
  // Under a second; the square of the number would be minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

}  // namespace tandem::tests
