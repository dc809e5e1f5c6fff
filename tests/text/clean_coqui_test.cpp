// Style coqui against the texts coqui-tts 0.28 itself made (tests/parity/make_clean_fixtures.py).
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "support/captured.h"
#include "text/clean.h"

namespace tandem {
namespace {

nlohmann::json fixture() {
  std::ifstream file(TANDEM_SOURCE_DIR "/tests/text/fixtures/clean_coqui.json");
  return nlohmann::json::parse(file).at("texts");
}

std::optional<std::string> clean_or_nothing(const std::string& text, const std::string& language) {
  try {
    return clean_text(text, language, CleanStyle::coqui);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return std::nullopt;
  }
}

class CleanAsCoqui : public testing::TestWithParam<std::string> {};

TEST_P(CleanAsCoqui, GivesItsText) {
  const std::string language = GetParam();
  size_t count = 0, equal = 0;
  // Chinese and Japanese need dictionaries we have not; see clean.h.
  const std::map<std::string, double> shares{{"zh-cn", 0.95}, {"ja", 0.3}};
  const nlohmann::json table = fixture();
  for (const nlohmann::json& row : table.at(language)) {
    const std::string text = row.at("text");
    const nlohmann::json& clean = row.at("clean");
    const auto expected = clean.is_null() ? std::nullopt : std::optional(clean.get<std::string>());
    const auto ours = clean_or_nothing(text, language);
    ++count;
    equal += ours == expected ? 1 : 0;
    if (!shares.contains(language)) {
      EXPECT_EQ(ours.value_or("(raises)"), expected.value_or("(raises)")) << text;
    }
  }
  EXPECT_GE(count, 60u);
  const double share = shares.contains(language) ? shares.at(language) : 1.0;
  EXPECT_GE(static_cast<double>(equal), share * static_cast<double>(count));
}

INSTANTIATE_TEST_SUITE_P(Languages, CleanAsCoqui, testing::ValuesIn([] {
                           std::vector<std::string> codes;
                           for (const Language& language : languages())
                             codes.push_back(language.code);
                           return codes;
                         }()),
                         [](const auto& language) { return language.param.substr(0, 2); });

std::string failure(const char* text, const char* language) {
  const Error error = error_of([&] { clean_text(text, language, CleanStyle::coqui); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_EQ(error.hint(), "write the number in words, or clean in the style `best`");
  return error.what();
}

TEST(CleanStyleCoqui, SaysWhereCoquiRaises) {
  EXPECT_EQ(failure("Stalo se to 5. května", "cs"),
            "Coqui's cleaner has no words for `5.` in `cs`: num2words fails for this ordinal.");
  EXPECT_EQ(failure("मेरे पास 14 हैं", "hi"),
            "Coqui's cleaner has no words for `1` in `hi`: num2words does not know Hindi.");
  EXPECT_EQ(failure("0,1234 cm", "hu"),
            "Coqui's cleaner has no words for `0,1234` in `hu`: num2words fails for this decimal.");
  EXPECT_EQ(failure("1234567890123456789", "en"),
            "Coqui's cleaner has no words for `1234567890123456789` in `en`: it has more than 18 "
            "digits.");
  EXPECT_EQ(failure("1234567890123456789.5", "en"),
            "Coqui's cleaner has no words for `1234567890123456789.5` in `en`: it has more than 18 "
            "digits.");
  EXPECT_EQ(failure("$123456789012345678", "en"),
            "Coqui's cleaner has no words for `$123456789012345678` in `en`: it is too large.");
}

TEST(CleanStyleCoqui, KeepsItsMistakes) {
  EXPECT_EQ(clean_text("12,5 für 20€", "de", CleanStyle::coqui),
            "zwölf Komma fünf für zwanzig Euro");
  EXPECT_EQ(clean_text("25€", "pt", CleanStyle::coqui), "vinte");
  EXPECT_EQ(clean_text("$5.", "tr", CleanStyle::coqui), "dolar beşinci");
  EXPECT_EQ(clean_text("£5 i $5", "pl", CleanStyle::coqui), "funt pięć i dolar pięć");
  EXPECT_EQ(clean_text("İstanbul", "tr", CleanStyle::coqui), "istanbul");
}

TEST(CleanText, GivesTheSameInEveryThread) {
  const nlohmann::json table = fixture();
  std::vector<std::string> alone, together(8);
  const auto all = [&] {
    std::string joined;
    for (const auto& [language, rows] : table.items()) {
      for (const nlohmann::json& row : rows) {
        joined += clean_or_nothing(row.at("text"), language).value_or("(raises)") + "\n";
      }
    }
    return joined;
  };
  std::vector<std::thread> threads;
  for (std::string& result : together) threads.emplace_back([&] { result = all(); });
  for (std::thread& thread : threads) thread.join();
  const std::string expected = all();
  for (const std::string& result : together) EXPECT_TRUE(result == expected);
}

}  // namespace
}  // namespace tandem
