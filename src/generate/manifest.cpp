#include "generate/manifest.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "util/atomic_file.h"

namespace tandem {

std::string to_json_line(const ManifestEntry& entry) {
  nlohmann::ordered_json line = {{"id", entry.id},
                                 {"text", entry.text},
                                 {"normalised", entry.normalised},
                                 {"language", entry.language},
                                 {"voice", entry.voice},
                                 {"seed", entry.seed},
                                 {"seconds", entry.seconds},
                                 {"status", entry.status},
                                 {"troubles", entry.troubles},
                                 {"other_troubles", entry.other_troubles},
                                 {"pieces", entry.pieces},
                                 {"attempts", entry.attempts},
                                 {"silence_cut", entry.silence_cut},
                                 {"file", entry.file},
                                 {"work_seconds", entry.work_seconds},
                                 {"rtf", entry.rtf()},
                                 {"recipe", entry.recipe}};
  if (!entry.error.empty()) line["error"] = entry.error;
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool from_json_line(const std::string& line, ManifestEntry& entry) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) return false;
  try {
    entry = {.id = object.at("id"),
             .text = object.at("text"),
             .normalised = object.at("normalised"),
             .language = object.at("language"),
             .voice = object.at("voice"),
             .seed = object.at("seed"),
             .seconds = object.at("seconds"),
             .work_seconds = object.at("work_seconds"),
             .status = object.at("status"),
             .error = object.value("error", ""),
             .troubles = object.at("troubles"),
             .other_troubles = object.at("other_troubles"),
             .pieces = object.at("pieces"),
             .attempts = object.at("attempts"),
             .silence_cut = object.at("silence_cut"),
             .file = object.at("file"),
             .recipe = object.at("recipe")};
  } catch (const nlohmann::json::exception&) {
    return false;
  }
  return true;
}

Manifest::Manifest(const std::filesystem::path& folder)
    : journal_(folder / "manifest.jsonl",
               fmt::format("another run is writing into `{}`", folder.string())) {
  for (const std::string& line : journal_.lines()) {
    ManifestEntry entry;
    if (from_json_line(line, entry)) entries_[entry.file] = std::move(entry);
  }
}

const ManifestEntry* Manifest::find(const std::string& file) const {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(file);
  return found == entries_.end() ? nullptr : &found->second;
}

void Manifest::add(const ManifestEntry& entry) {
  journal_.add(to_json_line(entry));
  std::lock_guard lock(mutex_);
  entries_[entry.file] = entry;
}

void Manifest::finish(const std::vector<std::string>& files) {
  std::lock_guard lock(mutex_);
  std::string text;
  for (const std::string& file : files) {
    const auto found = entries_.find(file);
    if (found != entries_.end()) text += to_json_line(found->second) + "\n";
  }
  write_file_atomically(journal_.path(), text);
}

}  // namespace tandem
