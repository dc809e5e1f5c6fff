// Rule texts for ICU's RuleBasedNumberFormat that give the cardinal numbers of num2words 0.5.14,
// which is what the released XTTS v2 heard. `%main` is what is spoken; some languages have more
// rule sets. Numbers are below 10^18. What a rule cannot say (Italian accents and commas, the
// Portuguese "e") number_words.cpp does afterwards; Arabic has no rules, see number_arabic.cpp.
#pragma once

#include "text/language_id.h"

namespace tandem {

struct NumberRules {
  const char* text;    // nullptr: this language has none
  const char* plural;  // the locale whose plural forms the rules use
};
NumberRules number_rules(LanguageId language);

}  // namespace tandem
