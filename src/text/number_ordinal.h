// The ordinals that are not made from the cardinal's end. Numbers from 0 to largest_spoken_number.
#pragma once

#include "text/number_words.h"

namespace tandem {

std::string spanish_ordinal(int64_t number);
Words portuguese_ordinal(int64_t number);
Words polish_ordinal(int64_t number);
std::string russian_ordinal(int64_t number);
Words korean_ordinal(int64_t number);

// Words num2words does not have. Czech up to 999, nominative masculine.
Words czech_ordinal(int64_t number);

}  // namespace tandem
