// Names of files for ids of any kind: safe on any disk, and no two alike, also on disks that do not
// tell upper from lower case. They depend on the ids and their order only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

constexpr size_t longest_clip_name = 180;  // bytes; leaves room for an ending and a draft's mark

// The id where a disk takes it. Separators, control characters and what Windows refuses become `_`;
// a first `-` or `.` gets a `_` before it, so that no program takes the name for an option or hides
// it, and so do Windows' device names. Empty when the id is.
std::string safe_clip_name(std::string_view id);

// One name an id: its safe form, or `000001` by its place for an empty id. The first of equal ids
// keeps it, the others become `{id}_2`, `{id}_3`, …, passing over what is another id's own name.
std::vector<std::string> clip_names(const std::vector<std::string>& ids);

}  // namespace tandem
