// What tests of files and errors share: what is in a file, and what an action throws.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "support/temporary_folder.h"
#include "tandem/error.h"

namespace tandem::tests {

inline void put(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// As main would tell it: the sentence with its causes, the kind by name ("nothing" when the action
// returned).
struct Thrown {
  std::string kind, sentence, hint;
};

template <class Action>
Thrown thrown_by(const Action& action) {
  try {
    action();
  } catch (const std::exception& error) {
    const Explanation why = explain(error);
    return {to_string(why.kind), why.sentence, why.hint};
  }
  return {"nothing", "", ""};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tandem::tests
