// The names of pounds, dollars and euros and of their hundredths.
#pragma once

#include "text/currency.h"

namespace tandem {

// One, two to four, more; languages with one plural use the first two. unit[0] is nullptr where
// there is no name.
struct CurrencyForms {
  const char* unit[3];
  const char* cent[3];
};

// The words of num2words 0.5.14.
CurrencyForms num2words_forms(LanguageId language, Currency currency);
// The same, with those it lacks and without words of another language. Arabic is apart.
CurrencyForms spoken_forms(LanguageId language, Currency currency);
ArabicUnits arabic_units(Currency currency);

}  // namespace tandem
