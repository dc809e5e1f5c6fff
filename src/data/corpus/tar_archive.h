// The members of a tar file (ustar, pax, GNU long names), where they stand and how long they are.
// Nothing is unpacked and no name of a member is ever used as a path.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tandem {

struct TarMember {
  std::string name;
  int64_t offset = 0;  // of its bytes in the tar
  int64_t bytes = 0;
};

class TarReader {
 public:
  // Throws Error(io) when it cannot be opened.
  explicit TarReader(std::string path);
  ~TarReader();
  TarReader(const TarReader&) = delete;
  TarReader& operator=(const TarReader&) = delete;

  // Calls `visit` for every plain file in order. What ends the walk early (a damaged header, a
  // member that runs past the end) is returned as a sentence; empty when the end was reached.
  std::string walk(const std::function<void(const TarMember&)>& visit);

  // The bytes of a small member. Throws Error(io).
  std::string read(const TarMember& member) const;

 private:
  bool read_at(int64_t offset, void* into, size_t bytes) const;
  std::string path_;
  int file_ = -1;
  int64_t size_ = 0;
};

}  // namespace tandem
