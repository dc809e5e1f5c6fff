// PyTorch's files from before its zip archives: a magic number, a version and facts about the
// machine, the content, and the keys of the storages, each a pickle; then the storages one after
// another, each behind its number of elements.
#pragma once

#include <map>
#include <string>

#include "checkpoint/byte_source.h"
#include "checkpoint/pth_tensors.h"

namespace tandem {

struct PthLegacy {
  PthContent content;
  struct Place {
    uint64_t offset = 0, size = 0;  // bytes in the file
  };
  std::map<std::string, Place> storages;  // by key
};

// Throws Error(corrupt).
PthLegacy read_pth_legacy(const StoredBytes& bytes, uint64_t largest_pickle);

}  // namespace tandem
