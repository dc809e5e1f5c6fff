// Tables of clips in the forms people use: `id|raw|normalised` without header (LJSpeech and the
// originals), columns named by a header (Coqui, Hugging Face's audiofolder), one JSON object a line
// (NeMo, audiofolder). Nothing here touches a disk.
#pragma once

#include <string>
#include <vector>

#include "data/corpus/found_clip.h"
#include "data/corpus/text_table.h"

namespace tandem {

enum class TableForm {
  bars,    // id|text or id|raw|normalised; the first and the last `|` bound the fields
  header,  // columns named in the first line
  objects  // one JSON object a line
};

struct TableKind {
  TableForm form = TableForm::bars;
  char separator = '|';
  std::string file_column;  // of `header` and `objects`: "audio_file", "file_name", ...
};

// From the first lines. Throws Error(data) with file, line and what was expected.
TableKind recognise_table(const TextTable& table);
// Paths as the table gives them; for `bars` the path is the id. Throws Error(data) for a missing
// column.
Rows read_rows(const TextTable& table, const TableKind& kind);

// Names under which a column or key is known, the preferred first.
const std::vector<std::string>& file_column_names();
const std::vector<std::string>& text_column_names();
const std::vector<std::string>& speaker_column_names();
const std::vector<std::string>& language_column_names();

// `a/b.c.wav` -> `a/b.c`, where the ending is one of sound.
std::string without_audio_ending(const std::string& path);
bool has_audio_ending(const std::string& path);
const std::vector<std::string>& audio_endings();  // ".wav", ".flac", ...

}  // namespace tandem
