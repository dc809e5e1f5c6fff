// Bytes that are read a range at a time: a file through pread, or memory. Nothing is read before it
// is asked for, so a file of gigabytes opens at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace tandem {

class StoredBytes {
 public:
  virtual ~StoredBytes() = default;
  uint64_t size() const { return size_; }
  const std::string& name() const { return name_; }  // for errors

  // Exactly `count` bytes from `offset` on. Throws Error(io), or Error(corrupt) where the source
  // ends before.
  void read(uint64_t offset, void* to, uint64_t count) const;
  std::string read(uint64_t offset, uint64_t count) const;

 protected:
  virtual void fetch(uint64_t offset, void* to, uint64_t count) const = 0;
  uint64_t size_ = 0;
  std::string name_;
};

std::unique_ptr<StoredBytes> open_bytes(const std::filesystem::path& path);  // Error(io)
// The bytes must outlive it.
std::unique_ptr<StoredBytes> bytes_in_memory(std::string_view bytes, std::string name);

}  // namespace tandem
