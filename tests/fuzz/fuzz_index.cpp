// libFuzzer: any bytes as an index, as they are and with all sums put right, and as a journal of a
// scan. They are read or refused with Error(corrupt); every row of what is read can be looked at.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "data/corpus/clip_index.h"
#include "data/corpus/index_format.h"
#include "data/corpus/scan_journal.h"
#include "tandem/error.h"

namespace {

volatile uint64_t g_seen = 0;  // so that the reads are not left out

void look(std::string_view text) {
  for (const char c : text) g_seen = g_seen + static_cast<unsigned char>(c);
}

void read_index(const std::string& bytes) {
  using namespace tandem;
  try {
    const ClipIndex index = ClipIndex::parse(bytes, "fuzz");
    for (int64_t row = 0; row < index.size(); ++row) {
      const ClipView clip = index[row];
      for (const auto text : {clip.id, clip.text, clip.speaker, clip.language, clip.path})
        look(text);
      look(index.full_path(row));
      if (clip.frames < 0 || clip.bytes < 0 || clip.offset + clip.bytes < 0) abort();
      if (!(clip.seconds() >= 0)) abort();
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tandem;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  std::vector<JournalRecord> records;
  size_t good = 0;
  read_journal(bytes, records, good);
  if (good > size) abort();
  read_index(bytes);
  if (seal_index(bytes)) read_index(bytes);
  return 0;
}
