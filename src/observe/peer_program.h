// A peer's program, run beside ours for a comparison: its standard output is one JSON document.
#pragma once

#include <string>
#include <vector>

namespace tandem {

// Where the reference libraries live: TANDEM_REFERENCE_PYTHON, or what scripts/references.sh makes.
// Throws Error(io) when there is neither.
std::string reference_python();
// bench/peers/<name> of the checkout. Throws Error(io).
std::string peer_script(const std::string& name);

// What the program printed; its complaints go where ours go. Throws Error(io) when it fails.
std::string run_peer_program(const std::vector<std::string>& words);

}  // namespace tandem
