// What a file of tensors is, and how much it holds of what, from its names and shapes alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/tensor_file.h"

namespace tandem {

struct InspectedPart {
  int64_t tensors = 0, parameters = 0, bytes = 0;  // statistics and tables are no parameters
};

struct InspectedFile {
  std::string kind;                                          // "XTTS model", "DVAE", …
  std::vector<std::pair<std::string, InspectedPart>> parts;  // gpt, conditioning, vocoder, …
  std::map<std::string, int64_t> types;                      // tensors by element type
  InspectedPart all;
};

InspectedFile inspect_tensors(const TensorFile& file);

// "float32", as Python calls it.
std::string type_name(at::ScalarType type);

}  // namespace tandem
