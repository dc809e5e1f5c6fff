// What lies in a folder, in an order that does not depend on the file system.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

// Plain files and folders directly in `folder`, full paths, sorted; hidden ones are passed over.
// Throw Error(io).
std::vector<std::string> files_in(const std::string& folder);
std::vector<std::string> folders_in(const std::string& folder);

// Plain files in any depth, relative to `folder`, sorted. Links to folders are not followed (they
// may lead in a circle), hidden names are passed over, so are folders that may not be read.
std::vector<std::string> files_below(const std::string& folder);

struct FolderCount {
  int64_t sounds = 0, texts = 0;
};
FolderCount count_files(const std::string& folder);

}  // namespace tandem
