// What every source of settings yields: a name somebody wrote, its value, and where.
#pragma once

#include <string>
#include <vector>

#include "config/resolve.h"
#include "config/value.h"

namespace tandem {

struct Entry {
  std::string name;  // as written, with its section where the place implies one
  Value value;
  Source source;
  std::string place;  // for sentences: as source.where, but a preset's or group's file and line
};

// The variables of the process that name settings; a notice for each that only looks like one.
std::vector<Entry> environment_entries(std::vector<std::string>& notices);

}  // namespace tandem
