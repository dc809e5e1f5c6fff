// A clip as a JSON object: a line of a NeMo manifest or of metadata.jsonl, or the `.json` member of
// a sample in a tar.
#pragma once

#include <string>
#include <string_view>

#include "data/corpus/found_clip.h"
#include "data/corpus/text_table.h"

namespace tandem {

// Fills text, speaker, language, path, start and seconds from `json`; what is wrong as a sentence,
// empty when all is well. A path is not asked for.
std::string read_clip_object(std::string_view json, FoundClip& found);

// The key under which an object names its file, or "".
std::string object_file_key(std::string_view json);

Rows read_objects(const TextTable& table);

}  // namespace tandem
