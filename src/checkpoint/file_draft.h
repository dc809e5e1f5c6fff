// A file in the making, beside its place: written piece by piece, then put in place, or removed
// again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace tandem {

class FileDraft {
 public:
  explicit FileDraft(std::filesystem::path place);  // all throw Error(io)
  ~FileDraft();
  FileDraft(const FileDraft&) = delete;
  FileDraft& operator=(const FileDraft&) = delete;

  void write(std::string_view bytes);
  uint64_t size() const { return size_; }
  void commit();  // forced to disk and renamed

 private:
  [[noreturn]] void fail(int error) const;
  std::filesystem::path place_, draft_;
  int file_ = -1;
  uint64_t size_ = 0;
};

}  // namespace tandem
