// Amounts of money in words.
#pragma once

#include <string_view>

#include "text/number_words.h"

namespace tandem {

enum class Currency { pound, dollar, euro };

inline constexpr double largest_amount = 9e16;

// As num2words 0.5.14 says it, always with cents. Nothing where it raises.
Words currency_words(LanguageId language, Currency currency, double amount);

// What a reader says: cents only when there are some, all currencies in all languages of
// number_words.
Words spoken_currency(LanguageId language, Currency currency, double amount);

}  // namespace tandem
