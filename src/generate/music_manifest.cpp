#include "generate/music_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/corpus/checksum64.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

constexpr const char* manifest_name = "manifest.jsonl";

std::string part_ending(int64_t shards) { return fmt::format("-of-{}.jsonl", shards); }

bool is_part(const std::string& name) {
  return name.starts_with("manifest.") && name.ends_with(".jsonl") &&
         name.find("-of-") != std::string::npos;
}

std::vector<fs::path> parts_of(const fs::path& folder) {
  std::vector<fs::path> parts;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (is_part(entry.path().filename().string())) parts.push_back(entry.path());
  }
  std::ranges::sort(parts);
  return parts;
}

// Parts go away when another job merges them.
std::string read_if_there(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return "";
  try {
    return read_file(path);
  } catch (const Error&) {
    if (fs::exists(path, ignored)) throw;
    return "";
  }
}

template <class Take>
void for_entries(const fs::path& folder, const Take& take) {
  // Parts first: one that is merged and removed meanwhile stands in the manifest, read after it.
  std::vector<std::string> texts;
  for (const fs::path& part : parts_of(folder)) texts.push_back(read_if_there(part));
  texts.insert(texts.begin(), read_if_there(folder / manifest_name));
  for (const std::string& text : texts) {
    for (const std::string& line : split(text, '\n')) {
      if (auto entry = clip_entry(line)) take(std::move(*entry));
    }
  }
}

template <class Entries>
void note_entry(Entries& entries, ClipEntry entry) {
  auto& outcomes = entries[{entry.file, entry.recipe}];
  (entry.status == "done" ? outcomes.done : outcomes.failed) = std::move(entry);
}

}  // namespace

std::string to_json_line(const ClipEntry& entry) {
  nlohmann::ordered_json line = {{"id", entry.id},
                                 {"text", entry.text},
                                 {"file", entry.file},
                                 {"seed", entry.seed},
                                 {"seconds", entry.seconds},
                                 {"status", entry.status},
                                 {"channels", entry.channels},
                                 {"sample_rate", entry.sample_rate},
                                 {"clipped", entry.clipped},
                                 {"bytes", entry.bytes},
                                 {"checksum", entry.checksum},
                                 {"recipe", entry.recipe}};
  if (!entry.audio_prompt.empty()) line["audio_prompt"] = entry.audio_prompt;
  if (!entry.error.empty()) line["error"] = entry.error;
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<ClipEntry> clip_entry(const std::string& line) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  try {
    return ClipEntry{.id = object.at("id"),
                     .text = object.at("text"),
                     .file = object.at("file"),
                     .audio_prompt = object.value("audio_prompt", ""),
                     .seed = object.at("seed"),
                     .recipe = object.at("recipe"),
                     .status = object.at("status"),
                     .error = object.value("error", ""),
                     .seconds = object.at("seconds"),
                     .channels = object.at("channels"),
                     .sample_rate = object.at("sample_rate"),
                     .clipped = object.at("clipped"),
                     .bytes = object.at("bytes"),
                     .checksum = object.at("checksum")};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::string file_checksum(const fs::path& file) {
  try {
    return fmt::format("{:016x}", checksum64(read_file(file)));
  } catch (const Error&) {
    return "";
  }
}

LineJournal ClipManifest::own_part(const ClipJob& job) {
  const fs::path path =
      job.folder / fmt::format("manifest.{}{}", job.shard, part_ending(job.shards));
  const std::string folder = job.folder.string();
  return LineJournal(path, job.shards == 1
                               ? fmt::format("another run is writing into `{}`", folder)
                               : fmt::format("another run is making shard {} of {} in `{}`",
                                             job.shard, job.shards, folder));
}

ClipManifest::ClipManifest(ClipJob job) : job_(std::move(job)), journal_(own_part(job_)) {
  // Jobs that cut the captions alike meet at no clip; others would.
  for (const fs::path& part : parts_of(job_.folder)) {
    const std::string name = part.filename().string();
    if (name.ends_with(part_ending(job_.shards)) || !LineJournal::is_held(part)) continue;
    throw Error(ErrorKind::io,
                fmt::format("another run is writing into `{}` with other shards (`{}`); this one "
                            "would make shard {} of {}",
                            job_.folder.string(), name, job_.shard, job_.shards))
        .hint("wait for it, or give all of them the same number of shards");
  }
  for_entries(job_.folder, [&](ClipEntry entry) { note_entry(entries_, std::move(entry)); });
}

std::optional<ClipEntry> ClipManifest::whole(const WantedClip& clip) const {
  std::optional<ClipEntry> entry;
  {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find({clip.file, clip.recipe});
    if (found == entries_.end() || !found->second.done) return std::nullopt;
    entry = found->second.done;
  }
  const fs::path file = job_.sounds() / clip.file;
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error || static_cast<int64_t>(size) != entry->bytes) return std::nullopt;
  return file_checksum(file) == entry->checksum ? entry : std::nullopt;
}

void ClipManifest::add(const ClipEntry& entry) {
  journal_.add(to_json_line(entry));
  std::lock_guard lock(mutex_);
  note_entry(entries_, entry);
}

std::optional<ClipEntry> ClipManifest::outcome(const Entries& entries,
                                               const WantedClip& clip) const {
  const auto found = entries.find({clip.file, clip.recipe});
  if (found == entries.end()) return std::nullopt;
  const auto& [done, failed] = found->second;
  std::error_code error;
  const bool there =
      done &&
      static_cast<int64_t>(fs::file_size(job_.sounds() / clip.file, error)) == done->bytes &&
      !error;
  return there ? done : failed;
}

bool ClipManifest::merge(const Captions& captions, const std::vector<WantedClip>& wanted,
                         bool partly) {
  journal_.sync();
  const auto look = [&] {
    Entries entries;
    for_entries(job_.folder, [&](ClipEntry entry) { note_entry(entries, std::move(entry)); });
    std::vector<std::optional<ClipEntry>> outcomes;
    for (const WantedClip& clip : wanted) outcomes.push_back(outcome(entries, clip));
    return outcomes;
  };
  const auto missing = [](const auto& outcomes) {
    return std::ranges::any_of(outcomes, [](const auto& one) { return !one; });
  };
  if (!partly && missing(look())) return false;
  const FileTurn turn(job_.folder / manifest_name);
  const auto outcomes = look();
  if (!partly && missing(outcomes)) return false;
  write(captions, outcomes);
  remove_parts();
  return true;
}

void ClipManifest::write(const Captions& captions,
                         const std::vector<std::optional<ClipEntry>>& outcomes) const {
  std::string manifest, metadata = csv_line(metadata_columns(captions.columns));
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i]) continue;
    manifest += to_json_line(*outcomes[i]) + "\n";
    if (outcomes[i]->status != "done") continue;
    std::vector<std::string> fields = captions.rows[i].fields;
    fields.push_back(outcomes[i]->file);
    metadata += csv_line(fields);
  }
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(job_.folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool ours = name.ends_with("-manifest.jsonl") || name.ends_with("-metadata.csv");
    if (name.starts_with(".draft-") && ours) remove_tree(entry.path());
  }
  write_file_atomically(job_.folder / "metadata.csv", metadata);
  write_file_atomically(job_.folder / manifest_name, manifest);
}

// All they hold stands in the manifest now. A part that another job holds is left to that job.
void ClipManifest::remove_parts() {
  for (const fs::path& part : parts_of(job_.folder)) {
    if (part != journal_.path()) LineJournal::remove_unless_held(part);
  }
  journal_.remove();
}

}  // namespace tandem
