#include "data/corpus/clip_object.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "data/corpus/clip_table.h"
#include "util/text.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

// A file that nests deeper than any manifest does would cost stack when it is freed.
bool nests_too_deeply(std::string_view json) {
  int depth = 0;
  for (const char c : json) {
    depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (depth > 64) return true;
  }
  return false;
}

Json parse(std::string_view json) {
  if (nests_too_deeply(json)) return Json(Json::value_t::discarded);
  return Json::parse(json.begin(), json.end(), nullptr, false);
}

std::string text_of(const Json& object, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    const auto found = object.find(key);
    if (found == object.end()) continue;
    if (found->is_string()) return trim(found->get<std::string>());
    if (found->is_number_integer()) return std::to_string(found->get<int64_t>());  // speaker: 12
  }
  return "";
}

std::string read_seconds(const Json& object, const char* key, double& into, bool& given) {
  const auto found = object.find(key);
  given = found != object.end() && !found->is_null();
  if (!given) return "";
  if (found->is_number()) into = found->get<double>();
  constexpr double a_year = 3.2e7;
  if (found->is_number() && std::isfinite(into) && into >= 0 && into < a_year) return "";
  into = 0;
  return fmt::format("`{}` is `{}`; expected seconds", key,
                     found->dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 40));
}

}  // namespace

std::string object_file_key(std::string_view json) {
  const Json object = parse(json);
  if (!object.is_object()) return "";
  for (const std::string& key : file_column_names()) {
    if (object.contains(key)) return key;
  }
  return "";
}

std::string read_clip_object(std::string_view json, FoundClip& found) {
  const Json object = parse(json);
  if (!object.is_object()) return "the line is no JSON object";
  Clip& clip = found.clip;
  const std::string path = text_of(object, file_column_names());
  if (!path.empty()) clip.path = path;
  if (const std::string text = text_of(object, text_column_names()); !text.empty()) {
    clip.text = text;
  }
  clip.speaker = text_of(object, speaker_column_names());
  clip.language = text_of(object, language_column_names());
  // NUL can come in through an escape.
  for (std::string* text : {&clip.path, &clip.text, &clip.speaker, &clip.language}) {
    if (text->find('\0') != std::string::npos) return "a value holds a NUL character";
  }
  bool has_offset = false, has_duration = false;
  double duration = 0;
  std::string wrong = read_seconds(object, "offset", found.start, has_offset);
  if (wrong.empty()) wrong = read_seconds(object, "duration", duration, has_duration);
  // Without an offset the duration only repeats the length of the file, rounded.
  if (has_offset && has_duration) found.seconds = duration;
  return wrong;
}

Rows read_objects(const TextTable& table) {
  Rows rows;
  Lines lines(table);
  Line line;
  while (lines.next(line)) {
    if (trim(line.text).empty()) continue;
    FoundClip found;
    std::string wrong = read_clip_object(line.text, found);
    if (wrong.empty() && found.clip.path.empty()) {
      wrong = "the object names no file; expected `" + join(file_column_names(), "` or `") + "`";
    }
    if (!wrong.empty()) {
      rows.bad.push_back({fmt::format("{}:{}", table.name, line.number), wrong});
      continue;
    }
    found.clip.id = without_audio_ending(found.clip.path);
    if (found.start > 0) found.clip.id += fmt::format("@{:.3f}", found.start);
    rows.clips.push_back(std::move(found));
  }
  return rows;
}

}  // namespace tandem
