#include "checkpoint/file_draft.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tandem/error.h"
#include "util/atomic_file.h"

namespace tandem {

FileDraft::FileDraft(std::filesystem::path place) : place_(std::move(place)) {
  draft_ =
      place_.parent_path() / fmt::format(".draft-{}-{}", ::getpid(), place_.filename().string());
  file_ = ::open(draft_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) fail(errno);
}

FileDraft::~FileDraft() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(draft_.c_str());
}

void FileDraft::fail(int error) const {
  throw Error(ErrorKind::io,
              fmt::format("cannot write `{}`: {}", place_.string(), std::strerror(error)))
      .hint(error == ENOSPC || error == EDQUOT ? "free some space" : "");
}

void FileDraft::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    bytes.remove_prefix(static_cast<size_t>(written));
    size_ += static_cast<uint64_t>(written);
  }
}

void FileDraft::commit() {
  if (::fsync(file_) != 0) fail(errno);
  if (::rename(draft_.c_str(), place_.c_str()) != 0) fail(errno);
  ::close(file_);
  file_ = -1;
  sync_to_disk(place_.has_parent_path() ? place_.parent_path() : std::filesystem::path("."));
}

}  // namespace tandem
