// From how a measuring program ended to what was measured.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "observe/tune_child.h"
#include "observe/tune_search.h"

namespace tandem {

// Exit code 5, being killed for memory, and a batch that had to be halved are all "out of memory".
// Throws Error(interrupted or terminated) when we were asked to stop.
TuneReading reading_of(const ChildEnd& end);

// The last line of its output as JSON; discarded where it is none.
nlohmann::json probe_document(const ChildEnd& end);
// The last line it wrote to standard error.
std::string last_words_of(const ChildEnd& end);
[[noreturn]] void throw_stopped();

}  // namespace tandem
