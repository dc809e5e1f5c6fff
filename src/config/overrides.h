// One word of the command line that is no flag: `key=value`, `+key=value`, `++key=value`, `~key`,
// or the choice of a group, `data=tta/musiccaps_captions`.
#pragma once

#include <string>

namespace tandem {

struct Override {
  enum class Kind { set, remove, choose };
  Kind kind = Kind::set;
  std::string name;   // of a setting; of a section or `preset` for choose
  std::string value;  // raw; empty for remove
  std::string place;  // the word itself, fit for a sentence
};

// Throws Error(config) for a word of another form. Names are not checked here.
Override parse_override(const std::string& word);

}  // namespace tandem
