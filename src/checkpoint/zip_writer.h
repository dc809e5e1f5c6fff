// Writes a zip archive of stored members, each at a multiple of 64 bytes, as PyTorch does. Members
// and offsets over 4 GiB become zip64.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/file_draft.h"

namespace tandem {

class ZipWriter {
 public:
  explicit ZipWriter(FileDraft& file) : file_(file) {}
  void add(const std::string& name, std::string_view bytes);
  void finish();  // the directory

 private:
  struct Entry {
    std::string name;
    uint64_t offset = 0, size = 0;
    uint32_t sum = 0;
  };
  FileDraft& file_;
  std::vector<Entry> entries_;
};

}  // namespace tandem
