// Everything the reference implementation refuses, and what only a hostile file would hold.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_bytes.h"
#include "tandem/error.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

// What follows the name of the file in the sentence; fails unless it is Error(corrupt).
std::string refusal(const std::string& bytes) {
  const Thrown thrown = thrown_by([&] { parse_safetensors(bytes, "f"); });
  EXPECT_EQ(thrown.kind, "corrupt") << thrown.sentence;
  const std::string opening = "`f` is not a valid safetensors file: ";
  EXPECT_TRUE(thrown.sentence.starts_with(opening)) << thrown.sentence;
  return thrown.sentence.substr(std::min(opening.size(), thrown.sentence.size()));
}

std::string refusal_of_entry(const std::string& entry, const std::string& data = "12345678") {
  return refusal(file_of("{" + entry + "}", data));
}

bool accepted(const std::string& bytes) {
  return thrown_by([&] { parse_safetensors(bytes, "f"); }).kind == "nothing";
}

}  // namespace

TEST(SafetensorsHeader, MustHaveItsLength) {
  EXPECT_EQ(refusal(""), "it has 0 bytes, less than the 8 of its length field");
  EXPECT_EQ(refusal("1234567"), "it has 7 bytes, less than the 8 of its length field");
}

TEST(SafetensorsHeader, MustNotBeTooLarge) {
  EXPECT_EQ(refusal(with_length(100'000'001, "{}")),
            "its header claims 100000001 bytes, more than 100000000");
  EXPECT_EQ(refusal(with_length(UINT64_MAX, "{}")),
            "its header claims 18446744073709551615 bytes, more than 100000000");
}

TEST(SafetensorsHeader, MustBeComplete) {
  EXPECT_EQ(refusal(with_length(3, "{}")), "its header claims 3 bytes, but only 2 follow");
  EXPECT_EQ(refusal(with_length(0, "")), "its header does not begin with `{`");
  EXPECT_TRUE(refusal(file_of("{\"a\":")).starts_with("its header is not JSON"));
}

TEST(SafetensorsHeader, MustBeUtf8) {
  const std::string sentence = refusal(file_of("{\"\xff\":1}"));
  EXPECT_TRUE(sentence.starts_with("its header is not JSON")) << sentence;
  EXPECT_TRUE(sentence.ends_with("ill-formed UTF-8 byte)")) << sentence;
  EXPECT_FALSE(contains(sentence, "\xff")) << "bytes of the file must not reach the terminal";
  EXPECT_TRUE(refusal(file_of("{\"\xc3\":1}")).starts_with("its header is not JSON"));
}

TEST(SafetensorsHeader, MustBeAnObject) {
  for (const char* text : {"[]", "1", " {}", "\xef\xbb\xbf{}", "\"a\"", "null"})
    EXPECT_EQ(refusal(file_of(text)), "its header does not begin with `{`") << text;
  for (const char* text : {"{", "{]", "{'a':1}", "{} {}", "{}x", "{/**/}", "{\"a\":NaN}"})
    EXPECT_TRUE(refusal(file_of(text)).starts_with("its header is not JSON")) << text;
}

TEST(SafetensorsHeader, MayBePaddedWithWhitespaceAndNothingElse) {
  EXPECT_TRUE(accepted(file_of("{}")));
  EXPECT_TRUE(accepted(file_of("{}     \n\t\r")));
  EXPECT_TRUE(refusal(file_of(std::string("{}\0\0\0\0\0\0", 8))).starts_with("its header"));
  EXPECT_TRUE(refusal(file_of(std::string("{}\0{", 4))).starts_with("its header"));
}

TEST(SafetensorsHeader, MustNotNameATensorTwice) {
  const std::string a = entry("a", "U8", "[4]", "[0,4]"), b = entry("a", "U8", "[4]", "[4,8]");
  EXPECT_EQ(refusal_of_entry(a + "," + b), "its header names `a` twice");
  EXPECT_EQ(refusal_of_entry(R"("__metadata__":{},"__metadata__":{})", ""),
            "its header names `__metadata__` twice");
  EXPECT_EQ(refusal_of_entry(R"("":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"":{})"),
            "its header names `` twice");
}

TEST(SafetensorsHeader, MustNotNameAFieldTwice) {
  EXPECT_EQ(refusal_of_entry(R"("a":{"dtype":"U8","dtype":"I8","shape":[8],"data_offsets":[0,8]})"),
            "its header names `dtype` of `a` twice");
}

TEST(SafetensorsHeader, MayHaveMetadataOfStringsOnly) {
  EXPECT_TRUE(accepted(file_of(R"({"__metadata__":{"a":"b"}})")));
  EXPECT_EQ(refusal_of_entry(R"("__metadata__":[])", ""), "`__metadata__` is not an object");
  EXPECT_EQ(refusal_of_entry(R"("__metadata__":{"a":1})", ""), "`__metadata__.a` is not a string");
  EXPECT_EQ(refusal_of_entry(R"("__metadata__":{"a":{"b":"c"}})", ""),
            "`__metadata__.a` is not a string");
}

TEST(SafetensorsHeader, DeepNestingIsRefusedBeforeItIsBuilt) {
  for (const size_t depth : {4, 100'000, 5'000'000}) {
    EXPECT_EQ(refusal(file_of("{\"a\":" + std::string(depth, '['))),
              "its header is nested deeper than the format is");
    EXPECT_EQ(refusal(file_of("{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}")),
              "its header is nested deeper than the format is");
  }
  std::string objects;
  for (int i = 0; i < 1'000'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(refusal(file_of(objects)), "its header is nested deeper than the format is");
}

TEST(SafetensorsEntry, MustHaveItsFields) {
  const std::string sentence = "the entry of tensor `a` must have dtype, shape and data_offsets";
  EXPECT_EQ(refusal_of_entry(R"("a":{"shape":[8],"data_offsets":[0,8]})"), sentence);
  EXPECT_EQ(refusal_of_entry(R"("a":{"dtype":"U8","data_offsets":[0,8]})"), sentence);
  EXPECT_EQ(refusal_of_entry(R"("a":{"dtype":"U8","shape":[8]})"), sentence);
  EXPECT_EQ(refusal_of_entry(R"("a":[])"), sentence);
  EXPECT_EQ(refusal_of_entry(R"("a":null)"), sentence);
}

TEST(SafetensorsEntry, MustHaveAKnownType) {
  for (const char* type : {"F8", "f32", "", "F32 "})
    EXPECT_EQ(refusal_of_entry(entry("a", type, "[2]", "[0,8]")),
              "the entry of tensor `a` has an unknown dtype");
  EXPECT_EQ(refusal_of_entry(R"("a":{"dtype":7,"shape":[8],"data_offsets":[0,8]})"),
            "the entry of tensor `a` has a dtype that is not a string");
}

TEST(SafetensorsEntry, MustHaveAShapeOfSizes) {
  for (const char* shape : {"[-1]", "[8.0]", "[8.5]", "[\"8\"]", "[null]", "[1e1]", "[-0]",
                            "[18446744073709551616]", "[9223372036854775808]"})
    EXPECT_EQ(refusal_of_entry(entry("a", "U8", shape, "[0,8]")),
              "the entry of tensor `a` has an extent that is no size")
        << shape;
  EXPECT_EQ(refusal_of_entry(entry("a", "U8", "8", "[0,8]")),
            "the entry of tensor `a` has no proper shape");
  std::string many = "[8";
  for (int i = 0; i < 100; ++i) many += ",1";
  EXPECT_EQ(refusal_of_entry(entry("a", "U8", many + "]", "[0,8]")),
            "the entry of tensor `a` has no proper shape");
}

TEST(SafetensorsEntry, ManyTensorsMustNotShareTheirBytes) {
  std::string entries;
  for (int i = 0; i < 1000; ++i) {
    entries += (i == 0 ? "" : ",") + entry("weight_" + std::to_string(i), "U8", "[8]", "[0,8]");
  }
  EXPECT_TRUE(
      refusal_of_entry(entries).ends_with("begins at 0 where 8 was expected (a hole or an "
                                          "overlap)"));
}

}  // namespace tandem::tests
