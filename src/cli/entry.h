// The whole program but its name: `main` calls it, and tests that have LibTorch loaded already.
#pragma once

#include <string>
#include <vector>

namespace tandem {

// The command and its words; the exit code.
int enter_program(std::vector<std::string> words);
// Ends the process. LibTorch's destructors take a fifth of a second to free what the system frees.
[[noreturn]] void leave_program(int code);

}  // namespace tandem
