#include "generate/manifest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* why) {
  throw Error(ErrorKind::io, fmt::format("cannot write `{}`: {}", path.string(), why));
}

}  // namespace

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

Manifest::Manifest(const std::filesystem::path& folder) : path_(folder / "manifest.jsonl") {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail(path_, std::strerror(errno));
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    ::close(descriptor_);
    throw Error(ErrorKind::io, fmt::format("another run is writing into `{}`", folder.string()))
        .hint("wait for it, or choose another folder");
  }
  const std::string bytes = read_file(path_);
  for (const std::string& line : split(bytes, '\n')) {
    ManifestEntry entry;
    if (from_json_line(line, entry)) entries_[entry.file] = std::move(entry);
  }
  // A half line must not swallow the next one.
  if (!bytes.empty() && bytes.back() != '\n' && ::write(descriptor_, "\n", 1) != 1) {
    fail(path_, std::strerror(errno));
  }
}

Manifest::~Manifest() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

const ManifestEntry* Manifest::find(const std::string& file) const {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(file);
  return found == entries_.end() ? nullptr : &found->second;
}

void Manifest::add(const ManifestEntry& entry) {
  const std::string line = to_json_line(entry) + "\n";
  std::lock_guard lock(mutex_);
  // One write: a line is there or not, unless the disk is full.
  if (::write(descriptor_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    fail(path_, std::strerror(errno));
  }
  entries_[entry.file] = entry;
}

void Manifest::finish(const std::vector<std::string>& files) {
  std::lock_guard lock(mutex_);
  std::string text;
  for (const std::string& file : files) {
    const auto found = entries_.find(file);
    if (found != entries_.end()) text += to_json_line(found->second) + "\n";
  }
  write_file_atomically(path_, text);
}

}  // namespace tandem
