#include "data/corpus/clip_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/corpus/clip_object.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

std::string place(const TextTable& table, int64_t line) {
  return fmt::format("{}:{}", table.name, line);
}

bool is_bar_header(std::string_view line) {
  const std::string start = lower(line.substr(0, 8));
  return start.starts_with("id|") || start.starts_with("fileid|") || start.starts_with("wav_id|");
}

std::string quoted_list(const std::vector<std::string>& names) {
  return "`" + join(names, "`, `") + "`";
}

int column_of(const std::vector<std::string>& header, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto found = std::find(header.begin(), header.end(), name);
    if (found != header.end()) return static_cast<int>(found - header.begin());
  }
  return -1;
}

std::vector<std::string> header_names(const Record& record) {
  std::vector<std::string> names;
  for (const std::string& field : record.fields) names.push_back(lower(trim(field)));
  return names;
}

// `path|text|speaker` without its header would be read as `id|raw|normalised`, the speaker's name
// as the text.
void refuse_coqui_without_header(const TextTable& table) {
  Records records(table, '|');
  Record record;
  int64_t looked = 0, like_speakers = 0, first = 0;
  while (looked < 50 && records.next(record)) {
    if (looked == 0) first = record.line;
    ++looked;
    const bool three = record.fields.size() == 3 || record.fields.size() == 4;
    if (!three || !has_audio_ending(record.fields[0])) return;
    const std::string& last = record.fields[2];
    const bool word = !last.empty() && last.find(' ') == std::string::npos;
    like_speakers += word && record.fields[1].find(' ') != std::string::npos;
  }
  if (2 * like_speakers <= looked) return;
  throw Error(ErrorKind::data,
              fmt::format("{}: the columns look like file, text and speaker, but no header names "
                          "them; expected `audio_file|text|speaker_name` as the first line",
                          place(table, first)))
      .hint("sed -i '1i audio_file|text|speaker_name' \"" + table.name + "\"");
}

Rows read_bars(const TextTable& table) {
  Rows rows;
  Lines lines(table);
  Line line;
  bool first = true;
  while (lines.next(line)) {
    if (trim(line.text).empty()) continue;
    const bool header = first && is_bar_header(line.text);
    first = false;
    if (header) continue;
    const size_t left = line.text.find('|'), right = line.text.rfind('|');
    if (left == std::string_view::npos) {
      rows.bad.push_back({place(table, line.number),
                          "the line has no `|`; expected `id|text` or `id|text|normalised text`"});
      continue;
    }
    const std::string id = trim(line.text.substr(0, left));
    std::string text = trim(line.text.substr(right + 1));
    if (text.empty() && right > left) text = trim(line.text.substr(left + 1, right - left - 1));
    if (id.empty()) {
      rows.bad.push_back({place(table, line.number), "the id before the first `|` is empty"});
      continue;
    }
    FoundClip found;
    found.clip.id = without_audio_ending(id);
    found.clip.path = id;
    found.clip.text = text;
    rows.clips.push_back(std::move(found));
  }
  return rows;
}

Rows read_columns(const TextTable& table, const TableKind& kind) {
  Rows rows;
  Records records(table, kind.separator);
  Record record;
  records.next(record);
  const std::vector<std::string> header = header_names(record);
  const int file = column_of(header, {kind.file_column});
  const int text = column_of(header, text_column_names());
  const int speaker = column_of(header, speaker_column_names());
  const int language = column_of(header, language_column_names());
  if (file < 0 || text < 0) {
    throw Error(ErrorKind::data,
                fmt::format("{}: the table has no column of text; expected one of {}, found {}",
                            place(table, record.line), quoted_list(text_column_names()),
                            quoted_list(header)))
        .hint("name the column in the first line");
  }
  const auto needed = static_cast<size_t>(std::max(file, text)) + 1;
  while (records.next(record)) {
    if (record.fields.size() < needed) {
      rows.bad.push_back(
          {place(table, record.line), fmt::format("the row has {} columns; the header names {}",
                                                  record.fields.size(), header.size())});
      continue;
    }
    const auto field = [&](int column) {
      const auto at = static_cast<size_t>(column);
      return column >= 0 && at < record.fields.size() ? trim(record.fields[at]) : std::string();
    };
    FoundClip found;
    found.clip.path = field(file);
    found.clip.id = without_audio_ending(found.clip.path);
    found.clip.text = field(text);
    found.clip.speaker = field(speaker);
    found.clip.language = field(language);
    if (found.clip.path.empty()) {
      rows.bad.push_back(
          {place(table, record.line), fmt::format("the column `{}` is empty", kind.file_column)});
      continue;
    }
    rows.clips.push_back(std::move(found));
  }
  return rows;
}

}  // namespace

TableKind recognise_table(const TextTable& table) {
  Lines lines(table);
  Line line;
  bool found = false;
  while (!found && lines.next(line)) found = !trim(line.text).empty();
  if (!found)
    throw Error(ErrorKind::data, fmt::format("`{}` holds no clip: it is empty", table.name));
  const std::string start = trim(line.text);
  if (start.front() == '{') return {TableForm::objects, 0, object_file_key(start)};
  if (start.front() == '[') {
    throw Error(ErrorKind::data, fmt::format("{}: a JSON array; expected one object a line",
                                             place(table, line.number)))
        .hint(fmt::format("jq -c '.[]' \"{0}\" > \"{0}l\"", table.name));
  }
  for (const char separator : {'|', ',', '\t'}) {
    Records records(table, separator);
    Record record;
    try {
      records.next(record);
    } catch (const Error&) {
      continue;  // a quote that means nothing with another separator
    }
    const std::vector<std::string> header = header_names(record);
    if (header.size() < 2 && separator != '|') continue;
    const int column = column_of(header, file_column_names());
    const bool named = column >= 0 && (header.size() > 1 || separator != '|');
    if (named) return {TableForm::header, separator, header[static_cast<size_t>(column)]};
  }
  if (start.find('|') != std::string::npos) {
    refuse_coqui_without_header(table);
    return {};
  }
  throw Error(ErrorKind::data,
              fmt::format("{}: neither `id|text` nor a header that names a column of files (one of "
                          "{}) and one of text",
                          place(table, line.number), quoted_list(file_column_names())))
      .hint("add a first line such as file_name,text");
}

Rows read_rows(const TextTable& table, const TableKind& kind) {
  switch (kind.form) {
    case TableForm::bars: return read_bars(table);
    case TableForm::header: return read_columns(table, kind);
    case TableForm::objects: return read_objects(table);
  }
  return {};
}

const std::vector<std::string>& file_column_names() {
  static const std::vector<std::string> names = {"audio_file", "file_name", "audio_filepath",
                                                 "audio_path", "path"};
  return names;
}
const std::vector<std::string>& text_column_names() {
  static const std::vector<std::string> names = {
      "text", "transcription", "sentence", "transcript", "normalized_text", "normalised_text"};
  return names;
}
const std::vector<std::string>& speaker_column_names() {
  static const std::vector<std::string> names = {"speaker_name", "speaker", "speaker_id",
                                                 "client_id"};
  return names;
}
const std::vector<std::string>& language_column_names() {
  static const std::vector<std::string> names = {"language", "lang", "locale"};
  return names;
}

const std::vector<std::string>& audio_endings() {
  static const std::vector<std::string> endings = {".wav", ".flac", ".mp3",  ".ogg",  ".opus",
                                                   ".m4a", ".aif",  ".aiff", ".webm", ".aac"};
  return endings;
}

bool has_audio_ending(const std::string& path) { return without_audio_ending(path) != path; }

std::string without_audio_ending(const std::string& path) {
  const std::string low = lower(path.substr(path.size() < 6 ? 0 : path.size() - 6));
  for (const std::string& ending : audio_endings()) {
    if (low.ends_with(ending)) return path.substr(0, path.size() - ending.size());
  }
  return path;
}

}  // namespace tandem
