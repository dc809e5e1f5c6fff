// Which stages of a voice were trained: `trained.json` of its folder.
#pragma once

#include <filesystem>
#include <set>
#include <string>

namespace tandem {

// Of "dvae", "gpt", "decoder". A folder without that file, such as Coqui's, has all of them. Throws
// Error(corrupt) for a file that lists none.
std::set<std::string> trained_stages(const std::filesystem::path& folder);

}  // namespace tandem
