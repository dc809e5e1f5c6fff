// Bytes that can be read at any place: a file, a slice of one, or memory. Readers see only this, so
// that a member of a tar and a fuzzer's buffer are read like a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "audio/file/audio_file.h"

namespace tandem {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // As many of the bytes from `offset` as there are, into `into`; returns how many. Throws
  // AudioError(unreadable).
  virtual int64_t read_at(int64_t offset, std::span<std::byte> into) = 0;
  int64_t size() const { return size_; }
  // In backticks, fit for a sentence whatever characters the path has.
  const std::string& name() const { return name_; }

 protected:
  int64_t size_ = 0;
  std::string name_;
};

// Not mapped into memory: a mapped file that shrinks ends the process, a read one is short.
class FileSlice final : public ByteSource {
 public:
  // Throws AudioError(missing | unreadable | truncated). Never waits: what is not a plain file (a
  // pipe, a device, a folder) is refused.
  explicit FileSlice(const AudioSource& source);
  ~FileSlice() override;
  FileSlice(const FileSlice&) = delete;
  FileSlice& operator=(const FileSlice&) = delete;

  int64_t read_at(int64_t offset, std::span<std::byte> into) override;
  int descriptor() const { return descriptor_; }
  int64_t offset() const { return offset_; }
  bool whole_file() const { return whole_file_; }

 private:
  int descriptor_ = -1;
  int64_t offset_ = 0;
  bool whole_file_ = true;
};

// Bytes of someone else, who keeps them.
class MemoryBytes final : public ByteSource {
 public:
  MemoryBytes(std::span<const std::byte> bytes, const std::string& name);
  int64_t read_at(int64_t offset, std::span<std::byte> into) override;

 private:
  std::span<const std::byte> bytes_;
};

// Reads at `offset` of an open file until `into` is full or the file ends.
int64_t read_descriptor_at(int descriptor, int64_t offset, std::span<std::byte> into,
                           const std::string& name);

// `path` in backticks, control characters as \n or \x01: a name must not break a line of a log.
std::string shown_name(const std::string& path);

}  // namespace tandem
