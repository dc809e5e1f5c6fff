// libFuzzer: any bytes as a table of clips. They are read or refused with Error(data); what is read
// is UTF-8 without NUL, and every clip names a file.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "data/corpus/clip_table.h"
#include "data/corpus/speakers.h"
#include "tandem/error.h"

namespace {

void check(const std::string& text) {
  if (text.find('\0') != std::string::npos) abort();
  if (tandem::find_bad_utf8(text) != std::string::npos) abort();
}

void check(tandem::Rows rows) {
  for (const tandem::FoundClip& found : rows.clips) {
    const tandem::Clip& clip = found.clip;
    if (clip.path.empty() || !(found.start >= 0) || !(found.seconds >= 0)) abort();
    for (const std::string* text : {&clip.id, &clip.text, &clip.speaker, &clip.path}) check(*text);
  }
  for (const tandem::BadRow& bad : rows.bad) {
    if (bad.sentence.empty()) abort();
  }
  tandem::guess_speakers(rows.clips, tandem::SpeakerRule());
}

void read_as(const tandem::TextTable& table, const tandem::TableKind& kind) {
  try {
    check(tandem::read_rows(table, kind));
  } catch (const tandem::Error& error) {
    if (error.kind() != tandem::ErrorKind::data) abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tandem;
  TextTable table;
  try {
    table = check_table({reinterpret_cast<const char*>(data), size}, "fuzz");
    const TableKind kind = recognise_table(table);
    read_as(table, kind);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) abort();
  }
  if (table.name.empty()) return 0;
  // Whatever it looks like, every reader must stand it.
  read_as(table, {TableForm::bars, '|', ""});
  read_as(table, {TableForm::objects, 0, ""});
  for (const char separator : {'|', ',', '\t'}) {
    read_as(table, {TableForm::header, separator, "file_name"});
  }
  return 0;
}
