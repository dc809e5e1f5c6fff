// What the parts of the .pth reader share: how such a file starts, and how one is refused.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// A zip archive, or the older format that is a chain of pickles.
bool starts_like_pth(std::string_view first_bytes);
bool starts_like_zip(std::string_view first_bytes);

// Error(corrupt): "`name` is not a valid .pth file: why".
[[noreturn]] void refuse_pth(const std::string& name, const std::string& why);

// Text out of a file for a sentence: cut to a length people read, without control characters.
std::string quotable(std::string_view text);

}  // namespace tandem
