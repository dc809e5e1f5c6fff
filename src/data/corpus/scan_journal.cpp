#include "data/corpus/scan_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tandem/error.h"
#include "util/atomic_file.h"

namespace tandem {
namespace {

constexpr size_t flush_bytes = 1 << 16;

[[noreturn]] void fail(const std::string& path, int error) {
  throw Error(ErrorKind::io, fmt::format("cannot write `{}`: {}", path, std::strerror(error)))
      .hint("choose a place you may write to with --out");
}

std::string name_of(const SoundKey& key) {
  std::string name = key.path;
  for (const auto value : {static_cast<double>(key.offset), key.start, key.seconds}) {
    name += '\0';
    name.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return name;
}

}  // namespace

ScanJournal::ScanJournal(std::string partial, std::string finished)
    : partial_(std::move(partial)), finished_(std::move(finished)) {
  load(finished_);
  open_partial();
}

ScanJournal::~ScanJournal() {
  if (file_ < 0) return;
  // A run that failed before it learned anything leaves nothing behind.
  if (!holds_records_) ::unlink(partial_.c_str());
  ::close(file_);
}

size_t ScanJournal::load(const std::string& path) {
  if (!std::filesystem::exists(path)) return 0;
  std::vector<JournalRecord> records;
  size_t good = 0;
  const JournalState state = read_journal(read_file(path), records, good);
  if (state == JournalState::other_version) {
    notices_.push_back(
        fmt::format("`{}` was written by another version: its work is done anew", path));
  }
  for (JournalRecord& record : records) known_[name_of(record.key)] = std::move(record);
  return good;
}

void ScanJournal::open_partial() {
  file_ = ::open(partial_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) fail(partial_, errno);
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    ::close(std::exchange(file_, -1));
    throw Error(
        ErrorKind::io,
        fmt::format("another process is preparing the same index: `{}` is in use", partial_))
        .hint("wait for it, or give another --out");
  }
  const size_t good = load(partial_);
  if (::ftruncate(file_, static_cast<off_t>(good)) != 0) fail(partial_, errno);
  if (good == 0) waiting_ = journal_header();
  holds_records_ = good > journal_header().size();
  flush();
}

const JournalRecord* ScanJournal::find(const SoundKey& key) const {
  const auto found = known_.find(name_of(key));
  if (found == known_.end()) return nullptr;
  const SoundKey& known = found->second.key;
  return known.bytes == key.bytes && known.modified == key.modified ? &found->second : nullptr;
}

void ScanJournal::add(const JournalRecord& record) {
  const std::string bytes = journal_bytes(record);
  bool full = false;
  {
    std::lock_guard lock(mutex_);
    waiting_ += bytes;
    holds_records_ = true;
    full = waiting_.size() >= flush_bytes;
  }
  if (full) flush();
}

void ScanJournal::flush() {
  std::lock_guard lock(mutex_);
  std::string_view bytes = waiting_;
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(partial_, errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  waiting_.clear();
}

void ScanJournal::finish(const std::vector<JournalRecord>& records) {
  std::string bytes = journal_header();
  for (const JournalRecord& record : records) bytes += journal_bytes(record);
  write_file_atomically(finished_, bytes);
  ::unlink(partial_.c_str());
}

}  // namespace tandem
