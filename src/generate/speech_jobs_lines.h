// The lines of a file of texts to speak: .txt (a text a line), .csv or .tsv (columns named in the
// first line) or .jsonl (an object a line). Columns and keys: `text`, and if wanted `id`,
// `language`, `speaker`, `voice` (a recording, or several with `;` between; a list in JSON).
#pragma once

#include <string>
#include <vector>

#include "data/corpus/text_table.h"

namespace tandem {

struct SpeechLine {
  std::string id;    // as given; empty: none
  std::string name;  // of its files, without ending: the id made safe, or 000001; no two alike
  std::string text, language, speaker;
  std::vector<std::string> voice;
  std::string problem;  // a sentence when the line cannot be used
  int64_t line = 0;     // in the file, from 1
};

bool is_line_file(const std::string& path);  // by its ending: .txt, .csv, .tsv, .jsonl

// Throws Error(io), or Error(data) when it has no line or no column of texts. A relative recording
// is looked for beside the file first.
std::vector<SpeechLine> read_speech_lines(const std::string& path);
std::vector<SpeechLine> speech_lines(const TextTable& table, const std::string& ending);

}  // namespace tandem
