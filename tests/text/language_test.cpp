#include <gtest/gtest.h>

#include "support/captured.h"
#include "text/clean.h"
#include "text/language_id.h"

namespace tandem {
namespace {

TEST(Languages, AreTheSeventeenOfXtts) {
  std::string codes;
  for (const Language& language : languages()) codes += language.code + " ";
  EXPECT_EQ(codes, "en es fr de it pt pl tr ru nl cs ar zh-cn hu ko ja hi ");
  ASSERT_EQ(languages().size(), language_count);
}

TEST(Languages, HaveTheLimitsOfXtts) {
  EXPECT_EQ(find_language("en").character_limit, 250);
  EXPECT_EQ(find_language("fr").character_limit, 273);
  EXPECT_EQ(find_language("zh-cn").character_limit, 82);
  EXPECT_EQ(find_language("ja").character_limit, 71);
  EXPECT_EQ(find_language("hi").character_limit, 150);
}

TEST(Languages, AreFoundWithRegionAndInAnyCase) {
  EXPECT_EQ(find_language("en-US").code, "en");
  EXPECT_EQ(find_language("PT_br").code, "pt");
  EXPECT_EQ(find_language("zh").code, "zh-cn");
  EXPECT_EQ(find_language("ZH-CN").code, "zh-cn");
  EXPECT_EQ(language_id("zh-TW"), LanguageId::zh);
  EXPECT_EQ(language_id("hi"), LanguageId::hi);
}

TEST(Languages, UnknownOneIsAnErrorWithTheList) {
  const Error error = error_of([] { find_language("xx"); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_STREQ(error.what(),
               "the language `xx` is not one of en, es, fr, de, it, pt, pl, tr, ru, nl, cs, ar, "
               "zh-cn, hu, ko, ja, hi.");
  EXPECT_EQ(error_of([] { find_language(""); }).kind(), ErrorKind::data);
  EXPECT_EQ(error_of([] { clean_text("a", "eng"); }).kind(), ErrorKind::data);
}

}  // namespace
}  // namespace tandem
