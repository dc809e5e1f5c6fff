// What was learned about sounds so far, so that a killed `prepare` goes on and an unchanged file is
// never opened twice. A file of records, each with its own sum: a torn end is cut off.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/corpus/sound_facts.h"

namespace tandem {

// Which sound: the facts hold as long as size and time of the file are the same.
struct SoundKey {
  std::string path = {};
  int64_t offset = 0;
  double start = 0, seconds = 0;
  int64_t bytes = 0;     // of the sound
  int64_t modified = 0;  // nanoseconds
};

struct JournalRecord {
  SoundKey key;
  SoundFacts facts;
  int32_t fault = -1;  // an AudioFault that lies in the content; -1: none
  std::string detail;  // of the fault
};

class ScanJournal {
 public:
  // Reads `finished` (of the last whole run) and `partial` (of one that was cut off), and goes on
  // appending to `partial`. Throws Error(io), also when another process writes it now.
  ScanJournal(std::string partial, std::string finished);
  ~ScanJournal();
  ScanJournal(const ScanJournal&) = delete;
  ScanJournal& operator=(const ScanJournal&) = delete;

  const JournalRecord* find(const SoundKey& key) const;
  // From any thread. Reaches the file at the latest with the next `flush`.
  void add(const JournalRecord& record);
  void flush();

  // Replaces `finished` by these records and removes `partial`.
  void finish(const std::vector<JournalRecord>& records);
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  size_t load(const std::string& path);  // bytes that could be read
  void open_partial();
  std::string partial_, finished_;
  std::unordered_map<std::string, JournalRecord> known_;
  std::vector<std::string> notices_;
  std::mutex mutex_;
  std::string waiting_;  // not yet written
  bool holds_records_ = false;
  int file_ = -1;
};

// The bytes of records, and back; what follows the first damaged record is left out.
constexpr uint32_t journal_version = 1;
std::string journal_header();
std::string journal_bytes(const JournalRecord& record);
enum class JournalState { good, other_version, no_journal };
JournalState read_journal(std::string_view bytes, std::vector<JournalRecord>& into, size_t& good);

}  // namespace tandem
