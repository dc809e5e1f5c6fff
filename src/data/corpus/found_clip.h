// What a dataset says about its clips before any sound was opened.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/corpus/clip_index.h"

namespace tandem {

struct FoundClip {
  Clip clip;           // id, text, speaker, language, path; offset and bytes of a member of a tar
  double start = 0;    // seconds: where the clip begins in its sound
  double seconds = 0;  // how long it is there; 0: the whole sound
};

// A row that names no clip: counted and listed, the others go on.
struct BadRow {
  std::string where;     // "metadata.csv:7"
  std::string sentence;  // what is wrong and what was expected
};

struct Rows {
  std::vector<FoundClip> clips;
  std::vector<BadRow> bad;
};

}  // namespace tandem
