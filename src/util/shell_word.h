// A word of a command that people copy into a shell.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// As it is where a shell reads it as one word, else in single quotes.
std::string shell_word(std::string_view text);

}  // namespace tandem
