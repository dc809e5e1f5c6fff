// The 17 languages as a number, for tables inside the text layer.
#pragma once

#include <cstddef>
#include <string_view>

namespace tandem {

enum class LanguageId { en, es, fr, de, it, pt, pl, tr, ru, nl, cs, ar, zh, hu, ko, ja, hi };
inline constexpr size_t language_count = 17;

// Takes what find_language takes. Throws Error(data).
LanguageId language_id(std::string_view code);

}  // namespace tandem
