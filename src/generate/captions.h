// Captions to make sound of: a csv, tsv, jsonl or txt file with a column of ids and one of texts.
// Quotes, embedded newlines and any UTF-8 are read as RFC 4180 says. Every row gets a name for its
// file that is safe on any disk and unlike all others: `{id}`, `{id}_2`, …
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/corpus/text_table.h"

namespace tandem {

struct Caption {
  int64_t row = 0;                  // in the file, from 0
  std::string id, text, name;       // name: of the file, without its ending
  std::string audio_prompt;         // a file to go on from; empty: none
  std::vector<std::string> fields;  // as in the file, for metadata.csv
};

struct Captions {
  std::vector<std::string> columns;
  std::vector<Caption> rows;
};

struct CaptionColumns {
  std::string id = "id", text = "text", audio_prompt = "";  // the last may be empty
  double fraction = 1.0;  // of the rows, drawn by `seed`, in the file's order
  uint64_t seed = 42;
};

// The ending decides: .csv, .tsv, .jsonl (an object a line), .txt (a caption a line; it has no
// columns, and clips are named by their line). An audio prompt that is a relative path is looked
// for beside the file first. Throws Error(io) when it is not there; Error(data) with the line for a
// missing column, a row with too many fields or without a text, an empty file, bad UTF-8;
// Error(config) for a fraction outside (0, 1].
Captions read_captions(const std::filesystem::path& file, const CaptionColumns& columns);
// The same from text that is there already; `ending` is ".csv", …
Captions parse_captions(const TextTable& table, std::string_view ending,
                        const CaptionColumns& columns);
// One row each, named after the text.
Captions captions_of_prompts(const std::vector<std::string>& prompts);

// Fields as one line of RFC 4180, with its LF.
std::string csv_line(const std::vector<std::string>& fields);
// The columns of the input and `filename` behind them. An input column of that name is called
// `input_filename`.
std::vector<std::string> metadata_columns(const std::vector<std::string>& columns);

}  // namespace tandem
