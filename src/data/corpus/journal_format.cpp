#include <cstring>

#include "data/corpus/checksum64.h"
#include "data/corpus/scan_journal.h"

namespace tandem {
namespace {

constexpr char magic[8] = {'T', 'A', 'N', 'D', 'E', 'M', 'J', 'R'};
constexpr uint32_t byte_order = 0x01020304;

struct Head {
  char magic[8];
  uint32_t byte_order, version;
};
struct RecordHead {
  uint64_t bytes, sum;  // of what follows
};

// One place that lists the fields, for both directions.
template <class Archive>
void visit(Archive& archive, JournalRecord& record) {
  SoundKey& key = record.key;
  SoundFacts& facts = record.facts;
  archive(key.path), archive(key.offset), archive(key.start), archive(key.seconds);
  archive(key.bytes), archive(key.modified);
  archive(facts.frames), archive(facts.first_frame), archive(facts.sample_rate);
  archive(facts.channels), archive(facts.part), archive(facts.decoded), archive(facts.peak);
  archive(facts.clipping), archive(facts.silence), archive(facts.dc), archive(facts.rms);
  archive(facts.loudness), archive(facts.fingerprint), archive(facts.format);
  archive(record.fault), archive(record.detail);
}

struct Writer {
  std::string bytes;
  void put(const void* data, size_t size) { bytes.append(static_cast<const char*>(data), size); }
  void operator()(const std::string& text) {
    const auto size = static_cast<uint32_t>(text.size());
    put(&size, sizeof size);
    put(text.data(), text.size());
  }
  void operator()(const bool& flag) { bytes += flag ? '\1' : '\0'; }
  template <class T>
  void operator()(const T& value) {
    put(&value, sizeof value);
  }
};

struct Reader {
  std::string_view bytes;
  bool good = true;
  bool take(void* into, size_t size) {
    good = good && bytes.size() >= size;
    if (!good) return false;
    std::memcpy(into, bytes.data(), size);
    bytes.remove_prefix(size);
    return true;
  }
  void operator()(std::string& text) {
    uint32_t size = 0;
    if (!take(&size, sizeof size) || bytes.size() < size) {
      good = false;
      return;
    }
    text.assign(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  void operator()(bool& flag) {
    char byte = 0;
    if (take(&byte, 1)) flag = byte != 0;
  }
  template <class T>
  void operator()(T& value) {
    take(&value, sizeof value);
  }
};

}  // namespace

std::string journal_header() {
  Head head = {{}, byte_order, journal_version};
  std::memcpy(head.magic, magic, sizeof magic);
  return {reinterpret_cast<const char*>(&head), sizeof head};
}

std::string journal_bytes(const JournalRecord& record) {
  Writer writer;
  JournalRecord copy = record;
  visit(writer, copy);
  const RecordHead head{writer.bytes.size(), checksum64(writer.bytes)};
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + writer.bytes;
}

JournalState read_journal(std::string_view bytes, std::vector<JournalRecord>& into, size_t& good) {
  good = 0;
  Head head;
  if (bytes.size() < sizeof head) return JournalState::no_journal;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (std::memcmp(head.magic, magic, sizeof magic) != 0) return JournalState::no_journal;
  if (head.byte_order != byte_order || head.version != journal_version) {
    return JournalState::other_version;
  }
  good = sizeof head;
  while (bytes.size() - good >= sizeof(RecordHead)) {
    RecordHead record_head;
    std::memcpy(&record_head, bytes.data() + good, sizeof record_head);
    const std::string_view rest = bytes.substr(good + sizeof record_head);
    if (record_head.bytes > rest.size()) break;
    Reader reader{rest.substr(0, record_head.bytes)};
    if (checksum64(reader.bytes) != record_head.sum) break;
    JournalRecord record;
    visit(reader, record);
    if (!reader.good) break;
    into.push_back(std::move(record));
    good += sizeof record_head + record_head.bytes;
  }
  return JournalState::good;
}

}  // namespace tandem
