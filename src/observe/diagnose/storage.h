// How fast files come from the disk itself: what the page cache holds of them is dropped first.
#pragma once

#include <string>
#include <vector>

#include "observe/diagnose/figures.h"

namespace tandem {

struct ColdRead {
  double rate = 0, rate_of_four = 0;  // bytes a second; 0: nothing could be read
  int useful_readers = 0;             // as in StorageFigures
  uint64_t bytes = 0;
};

// What is read of them next comes from the disk; of very many, or on a disk that is slow to open
// them, of those that were reached in so many seconds.
void drop_from_cache(const std::vector<std::string>& files, double seconds = 3);

// Reads some of them, evenly spread, with one thread, then with four, 16 and 64 as long as that is
// faster, each for `seconds` at most. Files that cannot be read are passed over.
ColdRead read_cold(const std::vector<std::string>& files, double seconds = 1);

}  // namespace tandem
