// The sentences that a run speaks as samples, of the file `observe.sample_text`.
#pragma once

#include <string>
#include <vector>

namespace tandem {

// One a line. Throws Error(io | data) for a file that is not there or has none.
std::vector<std::string> read_sample_sentences(const std::string& file);

}  // namespace tandem
