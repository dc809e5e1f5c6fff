#include "models/xtts/xtts_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "models/xtts/mel_stats.h"
#include "tandem/error.h"
#include "text/tokenizer.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

constexpr const char* complete_folder =
    "a complete folder holds the weights (model.pth, best_model.pth or model.safetensors), "
    "config.json and vocab.json";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

fs::path first_there(const fs::path& folder, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (is_file(folder / name)) return folder / name;
  }
  return {};
}

[[noreturn]] void fail_missing(const fs::path& folder, const std::string& what) {
  throw Error(ErrorKind::io,
              fmt::format("`{}` has no {}; {}", folder.string(), what, complete_folder));
}

// `best_model_1234.pth`: the one with the highest number.
fs::path newest_numbered(const fs::path& folder, const std::string& start) {
  int64_t highest = -1;
  fs::path newest;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(start) || !name.ends_with(".pth") || !is_file(entry.path())) continue;
    const auto number = parse_int(name.substr(start.size(), name.size() - start.size() - 4));
    if (number && *number > highest) {
      highest = *number;
      newest = entry.path();
    }
  }
  return newest;
}

fs::path find_weights(const fs::path& folder) {
  fs::path found = first_there(folder, {"model.safetensors", "model.pth", "best_model.pth"});
  if (found.empty()) found = newest_numbered(folder, "best_model_");
  if (found.empty()) found = newest_numbered(folder, "checkpoint_");
  if (found.empty()) fail_missing(folder, "weights");
  return found;
}

fs::path find_vocabulary(const fs::path& folder, const std::string& named) {
  fs::path found = first_there(folder, {"vocab.json"});
  if (!found.empty() || named.empty()) return found;
  // A trainer's folder leaves it with the original model and says where.
  for (const fs::path& place : {folder / named, folder / fs::path(named).filename()}) {
    if (is_file(place)) return place;
  }
  return {};
}

// Ids that config.json leaves open are those of the vocabulary.
void fill_text_ids(XttsGptSize& gpt, const fs::path& vocabulary) {
  if (gpt.start_text_token >= 0 && gpt.stop_text_token >= 0 && gpt.text_tokens >= 0) return;
  const auto tokenizer = load_tokenizer(vocabulary.string());
  const auto fill = [&](int64_t& id, const char* token) {
    if (id >= 0) return;
    id = tokenizer->id_of(token);
    if (id < 0) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("`{}` has no token {}, and config.json gives no id for it",
                              vocabulary.string(), token));
    }
  };
  fill(gpt.start_text_token, "[START]");
  fill(gpt.stop_text_token, "[STOP]");
  if (gpt.text_tokens < 0) gpt.text_tokens = tokenizer->vocabulary_size();
}

}  // namespace

XttsFolder XttsFolder::open(const fs::path& folder_or_file) {
  std::error_code ignored;
  if (!fs::exists(folder_or_file, ignored)) {
    throw Error(ErrorKind::io, fmt::format("there is no model `{}`; {}", folder_or_file.string(),
                                           complete_folder));
  }
  XttsFolder folder;
  if (fs::is_directory(folder_or_file, ignored)) {
    folder.path = folder_or_file;
    folder.weights_file = find_weights(folder.path);
  } else {
    folder.weights_file = folder_or_file;
    folder.path = folder_or_file.has_parent_path() ? folder_or_file.parent_path() : fs::path(".");
  }
  const fs::path config = first_there(folder.path, {"config.json"});
  if (config.empty()) fail_missing(folder.path, "config.json");
  folder.config = parse_xtts_config(read_file(config), config.string());
  folder.vocabulary_file = find_vocabulary(folder.path, folder.config.tokenizer_file);
  if (folder.vocabulary_file.empty()) fail_missing(folder.path, "vocab.json");
  folder.speakers_file = first_there(folder.path, {"speakers.safetensors", "speakers_xtts.pth"});
  folder.dvae_file = first_there(folder.path, {"dvae.safetensors", "dvae.pth"});
  folder.mel_stats_file = find_mel_stats(folder.path);
  fill_text_ids(folder.config.gpt, folder.vocabulary_file);
  return folder;
}

XttsFolder::OpenWeights XttsFolder::open_weights() const {
  OpenWeights open{.file = open_tensor_file(weights_file), .prefix = ""};
  for (const char* prefix : {"", "model/", "model/xtts.", "xtts."}) {
    const std::string start = std::string(prefix) + "gpt.";
    const auto& entries = open.file->entries();
    const bool fits = std::any_of(entries.begin(), entries.end(), [&](const TensorEntry& entry) {
      return entry.name.starts_with(start);
    });
    if (!fits) continue;
    open.prefix = prefix;
    return open;
  }
  throw Error(ErrorKind::corrupt,
              fmt::format("`{}` holds no XTTS model: none of its {} tensors starts with `gpt.`",
                          weights_file.string(), open.file->entries().size()));
}

}  // namespace tandem
