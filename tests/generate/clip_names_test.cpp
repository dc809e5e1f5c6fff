#include "generate/clip_names.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "support/captured.h"
#include "util/text.h"

namespace tandem {
namespace {

using Names = std::vector<std::string>;

TEST(ClipNames, KeepsIdsThatAnyDiskTakes) {
  for (const char* id : {"a", "0Gj8-vB1q4", "x.y", "a b", "привет", "🎹 piano", "a_2", "it's"}) {
    EXPECT_EQ(safe_clip_name(id), id);
  }
}

TEST(ClipNames, LeavesNoFolderNoOptionNoHiddenFileNoControl) {
  EXPECT_EQ(safe_clip_name("../../etc/passwd"), "_.._.._etc_passwd");
  EXPECT_EQ(safe_clip_name(".."), "___");
  EXPECT_EQ(safe_clip_name("."), "__");
  EXPECT_EQ(safe_clip_name("/"), "_");
  EXPECT_EQ(safe_clip_name("-0Gj8-vB1q4"), "_-0Gj8-vB1q4");
  EXPECT_EQ(safe_clip_name(".hidden"), "_.hidden");
  EXPECT_EQ(safe_clip_name("~"), "_~");
  EXPECT_EQ(safe_clip_name("a\nb\tc\x7f"), "a_b_c_");
  EXPECT_EQ(safe_clip_name(std::string("a\0b", 3)), "a_b");
  EXPECT_EQ(safe_clip_name("C:\\a*?\"<>|"), "C__a______");
  EXPECT_EQ(safe_clip_name("a\u202Egpj.exe"), "a_gpj.exe");
  EXPECT_EQ(safe_clip_name("a\u2028b\u0085c\uFEFFd"), "a_b_c_d");
  EXPECT_EQ(safe_clip_name("end. "), "end__");
  EXPECT_EQ(safe_clip_name(" "), "__");
}

TEST(ClipNames, AreNoDevicesOfWindows) {
  for (const char* id : {"CON", "nul", "Aux.txt", "com1", "LPT9.wav", "com²", "conin$", "prn .x"}) {
    EXPECT_EQ(safe_clip_name(id), std::string("_") + id);
  }
  for (const char* id : {"console", "com", "com10", "lpt", "auxiliary"}) {
    EXPECT_EQ(safe_clip_name(id), id);
  }
}

TEST(ClipNames, AreShortEnoughAndCutBetweenCharacters) {
  EXPECT_EQ(safe_clip_name(std::string(400, 'x')), std::string(longest_clip_name, 'x'));
  std::string piano = "a";
  while (piano.size() < 300) piano += "🎹";
  const std::string name = safe_clip_name(piano);
  EXPECT_EQ(name.size(), 177) << "one byte and 44 whole characters";
  EXPECT_TRUE(piano.starts_with(name));
  const Names two = clip_names({std::string(400, 'x'), std::string(401, 'x')});
  EXPECT_EQ(two[1], fmt::format("{:x>180}_2", ""));
}

TEST(ClipNames, RefusesBytesThatAreNoText) {
  const Error error = error_of([] { clip_names({"a", "\xFF"}); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_EQ(std::string(error.what()), "an id is not UTF-8; expected text to name a file after");
}

TEST(ClipNames, CountsDuplicatesAndNeverTakesTheNameOfAnotherId) {
  EXPECT_EQ(clip_names({"x", "x", "x"}), (Names{"x", "x_2", "x_3"}));
  EXPECT_EQ(clip_names({"x", "x", "x_2", "x"}), (Names{"x", "x_3", "x_2", "x_4"}));
  EXPECT_EQ(clip_names({"x_2", "x_2", "x", "x"}), (Names{"x_2", "x_2_2", "x", "x_3"}));
  EXPECT_EQ(clip_names({"a/b", "a_b", "a\\b"}), (Names{"a_b", "a_b_2", "a_b_3"}));
}

TEST(ClipNames, NumbersRowsWithoutAnId) {
  EXPECT_EQ(clip_names({"", "a", "", "000003"}), (Names{"000001", "a", "000003_2", "000003"}));
}

TEST(ClipNames, DifferOnDisksThatFoldCaseOrComposeOtherwise) {
  EXPECT_EQ(clip_names({"Piano", "piano", "PIANO"}), (Names{"Piano", "piano_2", "PIANO_3"}));
  EXPECT_EQ(clip_names({"Ähre", "ähre"}), (Names{"Ähre", "ähre_2"}));
  EXPECT_EQ(clip_names({"caf\u00E9", "cafe\u0301"}), (Names{"caf\u00E9", "cafe\u0301_2"}));
  EXPECT_EQ(clip_names({"Straße", "STRASSE"}), (Names{"Straße", "STRASSE_2"}));
}

TEST(ClipNames, HoldsForThousandsOfEqualIds) {
  Names ids(20000, "same");
  ids.push_back("same_300");
  const Names names = clip_names(ids);
  std::set<std::string> all(names.begin(), names.end());
  EXPECT_EQ(all.size(), ids.size());
  EXPECT_EQ(names[298], "same_299");
  EXPECT_EQ(names[299], "same_301");
  EXPECT_EQ(names.back(), "same_300");
}

}  // namespace
}  // namespace tandem
