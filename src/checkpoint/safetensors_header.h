// The header of a safetensors file: its tensors by place, and its metadata. All the rules of the
// format are checked here, before any tensor is read.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/byte_source.h"

namespace tandem {

struct SafetensorsEntry {
  std::string name;
  at::ScalarType type = at::kFloat;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // within the data
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
  uint64_t data_offset = 0;  // of the file
};

// Throws Error(corrupt) for a file that is not well-formed.
SafetensorsHeader read_safetensors_header(const StoredBytes& bytes);

}  // namespace tandem
