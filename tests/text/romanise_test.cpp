#include <gtest/gtest.h>

#include "text/clean.h"

namespace tandem {
namespace {

std::string korean(const char* text) { return clean_text(text, "ko"); }
std::string chinese(const char* text) { return clean_text(text, "zh"); }
std::string japanese(const char* text) { return clean_text(text, "ja"); }

TEST(RomaniseKorean, WritesEveryLetter) {
  EXPECT_EQ(korean("한국어 읽기"), "hangug-eo ilggi");
  EXPECT_EQ(korean("닭고기 없다"), "dalggogi eobsda");
}

TEST(RomaniseKorean, HyphenTellsSyllablesApart) {
  EXPECT_EQ(korean("물엿"), "mul-yeos");
  EXPECT_EQ(korean("각각"), "gaggag");
  EXPECT_EQ(korean("악가 아까"), "agga a-kka");
}

TEST(RomaniseChinese, TonesAreDigits) {
  EXPECT_EQ(chinese("你好吗"), "ni3hao3ma5");
  EXPECT_EQ(chinese("女绿略〇"), "nv3lv4lve4ling2");
}

TEST(RomaniseChinese, WordsDecideTheReading) {
  EXPECT_EQ(chinese("银行 行走"), "yin2hang2 xing2zou3");
  EXPECT_EQ(chinese("音乐 快乐"), "yin1yue4 kuai4le4");
}

TEST(RomaniseChinese, LeavesOtherLetters) { EXPECT_EQ(chinese("ABC 好"), "abc hao3"); }

TEST(RomaniseJapanese, KanaIsHepburn) {
  EXPECT_EQ(japanese("こんにちは"), "konnichiha");
  EXPECT_EQ(japanese("しんぶん。"), "shinbun.");
  EXPECT_EQ(japanese("がっこう"), "gakkou");
  EXPECT_EQ(japanese("コーヒー、カタカナ"), "koohii, katakana");
  EXPECT_EQ(japanese("カンイ"), "kan'i");
}

TEST(RomaniseJapanese, RareSyllables) {
  EXPECT_EQ(japanese("ヴァ"), "va");
  EXPECT_EQ(japanese("トゥ"), "tu");
  EXPECT_EQ(japanese("ヂャ"), "jya");
  EXPECT_EQ(japanese("つづく"), "tsuzuku");
}

TEST(RomaniseJapanese, ParticlesAreSaidAsTheySound) {
  EXPECT_EQ(japanese("これはほんです。"), "kore wa hon desu.");
}

TEST(RomaniseJapanese, AnyTextComesThrough) {
  EXPECT_EQ(japanese(""), "");
  EXPECT_EQ(japanese("っ"), "");
  EXPECT_EQ(japanese("Hello, World"), "hello, world");
}

}  // namespace
}  // namespace tandem
