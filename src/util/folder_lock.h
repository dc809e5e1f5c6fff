// A folder that one process at a time may write into. The lock goes with the process, however that
// ends, and leaves nothing behind.
#pragma once

#include <filesystem>

namespace tandem {

class FolderLock {
 public:
  // The folder must be there. Throws Error(io) when another process holds it. A file system that
  // knows no locks is written into without one.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int folder_ = -1;
};

}  // namespace tandem
