// Files that are either whole or not there. Text and bytes are written beside their place, forced
// to disk and renamed into it; folders are filled under a temporary name and renamed likewise.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tandem {

// All throw Error(io) that names the path and says why (no space, no permission, …).
std::string read_file(const std::filesystem::path& path);
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);
void make_folder(const std::filesystem::path& path);
// That files can be made in `folder`, which is there.
void check_may_write(const std::filesystem::path& folder);

// Forces a file or folder to disk.
void sync_to_disk(const std::filesystem::path& path);

// Removes a file, a link or a folder with all it holds, as far as it can; never throws. Use it, not
// std::filesystem::remove_all: LibTorch's libraries export a copy of that one which crashes.
void remove_tree(const std::filesystem::path& path);

// `link` becomes a symbolic link to `target`, replacing what was there in one step.
void point_link(const std::filesystem::path& link, const std::string& target);

// A folder in the making. Fill `path()`, then `commit()`; without it everything is removed again.
class FolderDraft {
 public:
  explicit FolderDraft(std::filesystem::path place);
  ~FolderDraft();
  FolderDraft(const FolderDraft&) = delete;
  FolderDraft& operator=(const FolderDraft&) = delete;
  const std::filesystem::path& path() const { return draft_; }
  void commit();

  // Drafts a killed process left in `parent`.
  static void remove_leftovers(const std::filesystem::path& parent);

 private:
  std::filesystem::path place_, draft_;
  bool committed_ = false;
};

}  // namespace tandem
