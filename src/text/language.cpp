#include <algorithm>
#include <string>

#include "tandem/error.h"
#include "text/clean.h"
#include "text/language_id.h"
#include "util/text.h"

namespace tandem {

// In the order of LanguageId. The limits are those XTTS v2 was trained within.
const std::vector<Language>& languages() {
  static const std::vector<Language> table{
      {"en", 250},   {"es", 239}, {"fr", 273}, {"de", 253}, {"it", 213}, {"pt", 203},
      {"pl", 224},   {"tr", 226}, {"ru", 182}, {"nl", 251}, {"cs", 186}, {"ar", 166},
      {"zh-cn", 82}, {"hu", 224}, {"ko", 95},  {"ja", 71},  {"hi", 150}};
  return table;
}

const Language& find_language(std::string_view code) {
  std::string name = lower(code);
  std::replace(name.begin(), name.end(), '_', '-');
  name = name.substr(0, name.find('-'));
  if (name == "zh") name = "zh-cn";
  for (const Language& language : languages()) {
    if (language.code == name) return language;
  }
  std::vector<std::string> codes;
  for (const Language& language : languages()) codes.push_back(language.code);
  throw Error(ErrorKind::data,
              "the language `" + std::string(code) + "` is not one of " + join(codes, ", ") + ".")
      .hint("give one of these codes; a region may follow it, as in `en-GB`");
}

LanguageId language_id(std::string_view code) {
  return static_cast<LanguageId>(&find_language(code) - languages().data());
}

}  // namespace tandem
