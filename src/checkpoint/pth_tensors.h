// The tensors a pickle describes, by the path of keys that leads to them, and what else it says.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/pth_pickle.h"

namespace tandem {

// A run of elements that tensors are views of.
struct PthStorage {
  std::string key;
  at::ScalarType type = at::kFloat;
  int64_t elements = 0;
  // In the older format a storage may be a part of another, which starts here in it.
  bool is_view = false;
  int64_t view_offset = 0;
};

struct PthTensor {
  std::string name;
  at::ScalarType type = at::kFloat;  // the storage's, but for bytes read as another type
  std::vector<int64_t> shape, strides;
  int64_t offset = 0;  // in elements of `type`, from the storage's start
  int64_t span = 0;    // elements from the first to the last it reaches, both counted; 0: empty
  PthStorage storage;
};

struct PthContent {
  std::vector<PthTensor> tensors;
  std::map<std::string, std::string> metadata;  // numbers, texts, names of unread objects
};

// `file_size` bounds what the tensors may claim together. Throws Error(corrupt).
PthContent list_tensors(const Pickle& pickle, uint64_t file_size, const std::string& name);

// The storages a pickle refers to, those of objects that were left unread too, as far as they are
// of a type we know.
std::vector<PthStorage> list_storages(const Pickle& pickle, const std::string& name);

// `torch.FloatStorage` -> float32; nothing for a type we do not know.
std::optional<at::ScalarType> storage_type(std::string_view class_name);
std::string_view storage_name(at::ScalarType type);  // float32 -> `FloatStorage`; empty: none
// `torch.float32` -> float32.
std::optional<at::ScalarType> dtype_named(std::string_view name);

}  // namespace tandem
