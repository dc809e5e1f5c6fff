// A zip archive whose members are stored as they are, which is how PyTorch writes its files. Only
// the directory is read. Refused with Error(corrupt): members that are compressed or encrypted,
// that overlap, share a name, or carry a name that leads out of the archive, and a directory that
// contradicts the members' own headers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/byte_source.h"

namespace tandem {

struct ZipMember {
  std::string name;
  uint64_t offset = 0, size = 0;  // of its bytes in the file
};

class ZipArchive {
 public:
  explicit ZipArchive(const StoredBytes& bytes);
  const std::vector<ZipMember>& members() const { return members_; }  // in the order of the file
  const ZipMember* find(const std::string& name) const;               // nullptr: none

 private:
  std::vector<ZipMember> members_;
  std::vector<size_t> by_name_;
};

}  // namespace tandem
