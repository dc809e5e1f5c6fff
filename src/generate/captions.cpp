#include "generate/captions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "generate/clip_names.h"
#include "tandem/error.h"
#include "util/counted_random.h"
#include "util/text.h"

namespace tandem {
namespace {

using Fields = std::vector<std::string>;

struct CaptionRows {
  Fields columns;
  std::vector<Fields> rows;
  std::vector<int64_t> lines;  // where each begins, from 1
};

CaptionRows table_rows(const TextTable& table, char separator) {
  Records reader(table, separator);
  Record record;
  CaptionRows all;
  if (!reader.next(record)) return all;
  for (const std::string& column : record.fields) all.columns.push_back(trim(column));
  while (reader.next(record)) {
    if (record.fields.size() > all.columns.size()) {
      throw Error(ErrorKind::data,
                  fmt::format("{}:{}: the row has {} fields; its first line names {} columns",
                              table.name, record.line, record.fields.size(), all.columns.size()))
          .hint("put a text that holds separators or line ends into quotes");
    }
    all.rows.push_back(record.fields);
    all.lines.push_back(record.line);
  }
  return all;
}

std::string shown(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "" : value.dump();
}

CaptionRows object_rows(const TextTable& table, const std::string& text) {
  CaptionRows all;
  int64_t without_text = 0;
  std::unordered_map<std::string, size_t> places;
  Lines reader(table);
  for (Line line; reader.next(line);) {
    if (trim(line.text).empty()) continue;
    const auto object = nlohmann::ordered_json::parse(line.text, nullptr, false);
    if (!object.is_object()) {
      throw Error(ErrorKind::data, fmt::format("{}:{}: the line is no JSON object; expected one "
                                               "like {{\"id\": \"a\", \"text\": \"calm piano\"}}",
                                               table.name, line.number));
    }
    Fields fields(all.columns.size());
    for (const auto& [key, value] : object.items()) {
      const auto [place, added] = places.try_emplace(key, all.columns.size());
      if (added) {
        all.columns.push_back(key);
        fields.emplace_back();
      }
      fields[place->second] = shown(value);
    }
    if (without_text == 0 && !object.contains(text)) without_text = line.number;
    all.rows.push_back(std::move(fields));
    all.lines.push_back(line.number);
  }
  if (without_text > 0 && places.contains(text)) {
    throw Error(ErrorKind::data, fmt::format("{}:{}: the object has no `{}`; others of the file do",
                                             table.name, without_text, text));
  }
  return all;
}

CaptionRows plain_rows(const TextTable& table) {
  CaptionRows all{.columns = {"text"}, .rows = {}, .lines = {}};
  Lines reader(table);
  for (Line line; reader.next(line);) {
    if (trim(line.text).empty()) continue;
    all.rows.push_back({trim(line.text)});
    all.lines.push_back(line.number);
  }
  return all;
}

size_t place_of(const CaptionRows& all, const std::string& column, const std::string& file,
                const char* setting) {
  const auto found = std::ranges::find(all.columns, column);
  if (found == all.columns.end()) {
    throw Error(ErrorKind::data,
                fmt::format("`{}` has no column `{}`; it has `{}`.{}", file, column,
                            join(all.columns, "`, `"), did_you_mean(column, all.columns)))
        .hint(fmt::format("name the column there is: {}=…", setting));
  }
  if (std::count(found, all.columns.end(), column) > 1) {
    throw Error(ErrorKind::data, fmt::format("`{}` names the column `{}` twice", file, column));
  }
  return static_cast<size_t>(found - all.columns.begin());
}

// Those with the smallest draws: a smaller share is part of a larger one.
std::vector<size_t> drawn_rows(size_t count, double fraction, uint64_t seed) {
  std::vector<size_t> rows(count);
  std::iota(rows.begin(), rows.end(), size_t{0});
  const auto wanted =
      std::max<size_t>(1, static_cast<size_t>(std::llround(fraction * static_cast<double>(count))));
  if (wanted >= count) return rows;
  const auto draw = [&](size_t row) { return counted_draw(seed, "caption", row, 0); };
  const auto middle = rows.begin() + static_cast<std::ptrdiff_t>(wanted);
  std::ranges::nth_element(rows, middle, [&](size_t a, size_t b) {
    return std::pair(draw(a), a) < std::pair(draw(b), b);
  });
  rows.resize(wanted);
  std::ranges::sort(rows);
  return rows;
}

CaptionRows rows_of(const TextTable& table, std::string_view ending, const std::string& text) {
  if (ending == ".csv") return table_rows(table, ',');
  if (ending == ".tsv") return table_rows(table, '\t');
  if (ending == ".jsonl") return object_rows(table, text);
  if (ending == ".txt") return plain_rows(table);
  throw Error(ErrorKind::data, fmt::format("`{}` ends in `{}`; captions come as .csv, .tsv, .jsonl "
                                           "or .txt",
                                           table.name, ending));
}

// Its first words.
std::string id_of_prompt(const std::string& prompt) {
  constexpr size_t longest = 60;  // bytes
  if (find_bad_utf8(prompt) != std::string::npos) {
    throw Error(ErrorKind::data, "a prompt is not UTF-8; expected text");
  }
  std::string id;
  bool gap = false;
  for (const char c : prompt) {
    const bool space = static_cast<unsigned char>(c) <= ' ';
    if (!space && gap && !id.empty()) id += '_';
    gap = space;
    if (!space) id += c;
  }
  size_t end = std::min(id.size(), longest);
  while (end < id.size() && (static_cast<unsigned char>(id[end]) & 0xC0) == 0x80) --end;
  id.resize(end);
  return id.empty() ? "clip" : id;
}

Captions picked(CaptionRows all, const std::vector<Caption>& named, const CaptionColumns& columns) {
  Captions captions{.columns = std::move(all.columns), .rows = {}};
  for (const size_t row : drawn_rows(named.size(), columns.fraction, columns.seed)) {
    captions.rows.push_back(named[row]);
    captions.rows.back().fields = std::move(all.rows[row]);
    captions.rows.back().fields.resize(captions.columns.size());
  }
  return captions;
}

}  // namespace

Captions parse_captions(const TextTable& table, std::string_view ending,
                        const CaptionColumns& columns) {
  if (!(columns.fraction > 0 && columns.fraction <= 1)) {
    throw Error(ErrorKind::config, fmt::format("a share of {} of the captions cannot be drawn; "
                                               "expected more than 0, at most 1",
                                               columns.fraction));
  }
  CaptionRows all = rows_of(table, ending, columns.text);
  if (all.rows.empty()) {
    throw Error(ErrorKind::data, fmt::format("`{}` holds no caption", table.name));
  }
  const bool plain = ending == ".txt";
  const size_t text = plain ? 0 : place_of(all, columns.text, table.name, "data.text_column");
  std::optional<size_t> id, prompt;
  if (!plain) id = place_of(all, columns.id, table.name, "data.id_column");
  if (!plain && !columns.audio_prompt.empty()) {
    prompt = place_of(all, columns.audio_prompt, table.name, "data.audio_prompt_column");
  }
  std::vector<Caption> rows(all.rows.size());
  std::vector<std::string> ids;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Fields& fields = all.rows[i];
    if (fields.size() <= text && ending != ".jsonl") {
      throw Error(ErrorKind::data,
                  fmt::format("{}:{}: the row ends after {} of {} fields, before its caption",
                              table.name, all.lines[i], fields.size(), all.columns.size()));
    }
    const auto field = [&](size_t place) { return place < fields.size() ? fields[place] : ""; };
    rows[i] = {.row = static_cast<int64_t>(i), .text = field(text)};
    if (id) rows[i].id = trim(field(*id));
    if (prompt) rows[i].audio_prompt = trim(field(*prompt));
    ids.push_back(rows[i].id);
  }
  std::vector<std::string> names = clip_names(ids);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].name = std::move(names[i]);
  return picked(std::move(all), rows, columns);
}

Captions read_captions(const std::filesystem::path& file, const CaptionColumns& columns) {
  Captions captions =
      parse_captions(load_table(file.string()), lower(file.extension().string()), columns);
  for (Caption& caption : captions.rows) {
    if (caption.audio_prompt.empty()) continue;
    const std::filesystem::path beside = file.parent_path() / caption.audio_prompt;
    std::error_code ignored;
    const bool relative = std::filesystem::path(caption.audio_prompt).is_relative();
    if (relative && std::filesystem::exists(beside, ignored))
      caption.audio_prompt = beside.string();
  }
  return captions;
}

Captions captions_of_prompts(const std::vector<std::string>& prompts) {
  std::vector<std::string> ids;
  for (const std::string& prompt : prompts) ids.push_back(id_of_prompt(prompt));
  const std::vector<std::string> names = clip_names(ids);
  Captions captions{.columns = {"id", "text"}, .rows = {}};
  for (size_t i = 0; i < prompts.size(); ++i) {
    captions.rows.push_back({.row = static_cast<int64_t>(i),
                             .id = names[i],
                             .text = prompts[i],
                             .name = names[i],
                             .audio_prompt = "",
                             .fields = {names[i], prompts[i]}});
  }
  return captions;
}

}  // namespace tandem
