#include "util/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <ftw.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "tandem/error.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

constexpr const char* draft_mark = ".draft-";
constexpr const char* aside_mark = ".aside-";  // what a draft takes the place of

[[noreturn]] void fail(const char* doing, const fs::path& path, int error) {
  const char* hint =
      error == ENOSPC || error == EDQUOT ? "free some space; what was saved before is untouched"
      : error == EACCES || error == EPERM || error == EROFS ? "choose a folder you may write to"
                                                            : "";
  throw Error(ErrorKind::io,
              fmt::format("cannot {} `{}`: {}", doing, path.string(), std::strerror(error)))
      .hint(hint);
}

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

void write_all(const fs::path& path, std::string_view bytes) {
  const Descriptor file{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (file.number < 0) fail("write", path, errno);
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.number, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", path, errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  if (::fsync(file.number) != 0) fail("write", path, errno);
}

fs::path draft_of(const fs::path& place) {
  return place.parent_path() /
         (draft_mark + std::to_string(::getpid()) + "-" + place.filename().string());
}

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void rename_into_place(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail("put in place", to, errno);
  sync_to_disk(parent_of(to));
}

}  // namespace

std::string read_file(const fs::path& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) fail("read", path, errno);
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(file.number, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path, errno);
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
  }
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  const fs::path draft = draft_of(path);
  try {
    write_all(draft, bytes);
    rename_into_place(draft, path);
  } catch (...) {
    std::error_code ignored;
    fs::remove(draft, ignored);
    throw;
  }
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail("make the folder", path, error.value());
}

void check_may_write(const fs::path& folder) {
  if (::access(folder.c_str(), W_OK | X_OK) != 0) fail("write into", folder, errno);
}

void sync_to_disk(const fs::path& path) {
  const Descriptor opened{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (opened.number < 0 || ::fsync(opened.number) != 0) fail("force to disk", path, errno);
}

void remove_tree(const fs::path& path) {
  const auto remove_one = [](const char* name, const struct stat*, int, struct FTW*) {
    std::remove(name);
    return 0;
  };
  constexpr int descriptors = 16;
  ::nftw(path.c_str(), remove_one, descriptors, FTW_DEPTH | FTW_PHYS);
}

void point_link(const fs::path& link, const std::string& target) {
  const fs::path draft = draft_of(link);
  ::unlink(draft.c_str());
  if (::symlink(target.c_str(), draft.c_str()) != 0) fail("make the link", link, errno);
  try {
    rename_into_place(draft, link);
  } catch (...) {
    ::unlink(draft.c_str());
    throw;
  }
}

FolderDraft::FolderDraft(fs::path place) : place_(std::move(place)), draft_(draft_of(place_)) {
  remove_tree(draft_);
  make_folder(draft_);
}

FolderDraft::~FolderDraft() {
  if (!committed_) remove_tree(draft_);
}

void FolderDraft::commit() {
  for (const auto& entry : fs::recursive_directory_iterator(draft_)) sync_to_disk(entry.path());
  sync_to_disk(draft_);
  // A plain rename cannot replace a filled folder: change places with the old one, then remove
  // that.
  if (fs::exists(place_)) {
    if (::renameat2(AT_FDCWD, draft_.c_str(), AT_FDCWD, place_.c_str(), RENAME_EXCHANGE) != 0) {
      if (errno != EINVAL && errno != ENOSYS) fail("put in place", place_, errno);
      // A file system that cannot do that: in two steps; behind a kill between them
      // remove_leftovers puts the old one back.
      const fs::path aside = place_.parent_path() / (aside_mark + place_.filename().string());
      remove_tree(aside);
      rename_into_place(place_, aside);
      rename_into_place(draft_, place_);
      remove_tree(aside);
    }
    sync_to_disk(parent_of(place_));
    remove_tree(draft_);
  } else {
    rename_into_place(draft_, place_);
  }
  committed_ = true;
}

void FolderDraft::remove_leftovers(const fs::path& parent) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(draft_mark)) remove_tree(entry.path());
    if (!name.starts_with(aside_mark)) continue;
    const fs::path place = parent / name.substr(std::string_view(aside_mark).size());
    if (fs::exists(place, ignored)) {
      remove_tree(entry.path());
    } else {
      fs::rename(entry.path(), place, ignored);
    }
  }
}

}  // namespace tandem
