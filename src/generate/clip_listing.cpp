#include "generate/clip_listing.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

template <class Number>
std::optional<Number> number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<Number>();
}

std::optional<ListedClip> parse_line(const std::string& line) {
  const Json object = Json::parse(line, nullptr, false);
  if (!object.is_object() || !object.contains("file")) return std::nullopt;
  return ListedClip{.id = text_of(object, "id"),
                    .text = text_of(object, "text"),
                    .file = text_of(object, "file"),
                    .status = text_of(object, "status"),
                    .error = text_of(object, "error"),
                    .checksum = text_of(object, "checksum"),
                    .seconds = number_of<double>(object, "seconds"),
                    .channels = number_of<int64_t>(object, "channels"),
                    .sample_rate = number_of<int64_t>(object, "sample_rate")};
}

std::vector<std::string> parts_of(const fs::path& folder) {
  std::vector<std::string> parts;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("manifest.") && name.ends_with(".jsonl") &&
        name.find("-of-") != std::string::npos)
      parts.push_back(name);
  }
  std::ranges::sort(parts);
  return parts;
}

}  // namespace

ClipListing read_clip_listing(const fs::path& folder) {
  ClipListing listing;
  std::map<std::string, size_t> places;
  const auto read = [&](const std::string& name, bool merged) {
    listing.there = true;
    for (const std::string& line : split(read_file(folder / name), '\n')) {
      if (trim(line).empty()) continue;
      auto clip = parse_line(line);
      if (!clip) {
        ++listing.bad_lines;
        continue;
      }
      const auto [place, added] = places.try_emplace(clip->file, listing.clips.size());
      if (added) {
        listing.clips.push_back(std::move(*clip));
        continue;
      }
      ListedClip& before = listing.clips[place->second];
      const bool another = before.id != clip->id || before.text != clip->text;
      if (merged && another) listing.listed_twice.push_back(clip->file);
      before = std::move(*clip);
    }
  };
  listing.parts = parts_of(folder);
  std::error_code ignored;
  if (fs::exists(folder / "manifest.jsonl", ignored)) read("manifest.jsonl", true);
  for (const std::string& part : listing.parts) read(part, false);
  // A run that was stopped leaves a manifest of what it had made.
  if (fs::exists(folder / "run.json", ignored)) {
    const Json run = Json::parse(read_file(folder / "run.json"), nullptr, false);
    const auto finished = run.is_object() ? run.find("finished") : run.end();
    listing.finished = finished == run.end() || *finished != false;
  }
  return listing;
}

}  // namespace tandem
