#include "generate/speech_jobs_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

std::string ending_of(const std::string& path) {
  return lower(std::filesystem::path(path).extension().string());
}

std::vector<std::string> recordings(const std::string& field) {
  std::vector<std::string> files;
  for (const std::string& part : split(field, ';')) {
    if (!trim(part).empty()) files.push_back(trim(part));
  }
  return files;
}

std::vector<SpeechLine> plain_lines(const TextTable& table) {
  std::vector<SpeechLine> lines;
  Lines reader(table);
  for (Line line; reader.next(line);) {
    if (trim(line.text).empty()) continue;
    lines.push_back({.text = trim(line.text), .line = line.number});
  }
  return lines;
}

std::vector<SpeechLine> table_lines(const TextTable& table, char separator) {
  Records reader(table, separator);
  Record record;
  if (!reader.next(record)) return {};
  std::map<std::string, size_t> columns;
  for (size_t i = 0; i < record.fields.size(); ++i) columns[lower(trim(record.fields[i]))] = i;
  if (!columns.contains("text")) {
    throw Error(ErrorKind::data, fmt::format("`{}` has no column `text` among `{}`", table.name,
                                             join(record.fields, "`, `")))
        .hint("its first line names the columns: text, and if wanted id, language, speaker, voice");
  }
  std::vector<SpeechLine> lines;
  while (reader.next(record)) {
    SpeechLine line{.line = record.line};
    const auto field = [&](const char* name) -> std::string {
      const auto column = columns.find(name);
      const bool there = column != columns.end() && column->second < record.fields.size();
      return there ? trim(record.fields[column->second]) : "";
    };
    line.id = field("id");
    line.text = field("text");
    line.language = field("language");
    line.speaker = field("speaker");
    line.voice = recordings(field("voice"));
    if (record.fields.size() > columns.size()) {
      line.problem = fmt::format("it has {} fields, the first line names {}", record.fields.size(),
                                 columns.size());
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

// Text of a key that may be missing or null; a number stands for its digits.
std::string text_of(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (found->is_number_integer()) return found->dump();
  throw Error(ErrorKind::data, fmt::format("`{}` is no text", key));
}

SpeechLine object_line(const Line& given) {
  SpeechLine line{.line = given.number};
  const nlohmann::json object = nlohmann::json::parse(given.text, nullptr, false);
  if (!object.is_object()) {
    line.problem = "it is no JSON object";
    return line;
  }
  try {
    line.id = text_of(object, "id");
    line.text = trim(text_of(object, "text"));
    line.language = text_of(object, "language");
    line.speaker = text_of(object, "speaker");
    const auto voice = object.find("voice");
    if (voice != object.end() && voice->is_array()) {
      line.voice = voice->get<std::vector<std::string>>();
    } else {
      line.voice = recordings(text_of(object, "voice"));
    }
  } catch (const Error& error) {
    line.problem = error.what();
  } catch (const nlohmann::json::exception&) {
    line.problem = "`voice` is no list of texts";
  }
  return line;
}

std::vector<SpeechLine> object_lines(const TextTable& table) {
  std::vector<SpeechLine> lines;
  Lines reader(table);
  for (Line line; reader.next(line);) {
    if (!trim(line.text).empty()) lines.push_back(object_line(line));
  }
  return lines;
}

// A file name of any id: no folders, no hidden files, not too long for a disk.
std::string safe_name(const std::string& id) {
  constexpr size_t longest = 180;
  std::string name;
  for (const char c : id) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    name += c == '/' || c == '\\' || control ? '_' : c;
  }
  if (name.starts_with('.')) name[0] = '_';
  if (name.size() <= longest) return name;
  size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  return name.substr(0, end);
}

void give_names(std::vector<SpeechLine>& lines) {
  std::set<std::string> used;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string wanted =
        lines[i].id.empty() ? fmt::format("{:06}", i + 1) : safe_name(lines[i].id);
    std::string name = wanted;
    for (int turn = 2; !used.insert(name).second; ++turn) name = fmt::format("{}_{}", wanted, turn);
    lines[i].name = name;
  }
}

}  // namespace

bool is_line_file(const std::string& path) {
  const std::string ending = ending_of(path);
  return ending == ".txt" || ending == ".csv" || ending == ".tsv" || ending == ".jsonl";
}

std::vector<SpeechLine> speech_lines(const TextTable& table, const std::string& ending) {
  std::vector<SpeechLine> lines = ending == ".csv"     ? table_lines(table, ',')
                                  : ending == ".tsv"   ? table_lines(table, '\t')
                                  : ending == ".jsonl" ? object_lines(table)
                                                       : plain_lines(table);
  if (lines.empty()) {
    throw Error(ErrorKind::data, fmt::format("`{}` holds no text to speak", table.name));
  }
  for (SpeechLine& line : lines) {
    if (line.problem.empty() && line.text.empty()) line.problem = "it has no text";
    if (line.problem.empty() && !line.speaker.empty() && !line.voice.empty()) {
      line.problem = "it names a speaker and a recording; expected one of them";
    }
  }
  give_names(lines);
  return lines;
}

std::vector<SpeechLine> read_speech_lines(const std::string& path) {
  std::vector<SpeechLine> lines = speech_lines(load_table(path), ending_of(path));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (SpeechLine& line : lines) {
    for (std::string& file : line.voice) {
      const std::filesystem::path beside = folder / file;
      if (std::filesystem::path(file).is_relative() && std::filesystem::exists(beside)) {
        file = beside.string();
      }
    }
  }
  return lines;
}

}  // namespace tandem
