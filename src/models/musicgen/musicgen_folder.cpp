#include "models/musicgen/musicgen_folder.h"

#include <ATen/core/TensorBody.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tandem/error.h"
#include "util/atomic_file.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

constexpr const char* whole_folder =
    "a whole folder holds config.json, tokenizer.json and the weights (model.safetensors or "
    "pytorch_model.bin, or shards with their index)";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

[[noreturn]] void fail_missing(const fs::path& folder, const std::string& what) {
  throw Error(ErrorKind::io,
              fmt::format("`{}` has no {}; {}", folder.string(), what, whole_folder));
}

// `weight_map` of an index: the file each tensor is in.
std::vector<fs::path> shards_of(const fs::path& index) {
  const auto refuse = [&](const std::string& expected) {
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}` is no index of shards: expected {}", index.string(), expected));
  };
  const Json tree = Json::parse(read_file(index), nullptr, false);
  if (!tree.is_object() || !tree.contains("weight_map") || !tree["weight_map"].is_object() ||
      tree["weight_map"].empty())
    refuse("an object `weight_map` of tensors and their files");
  std::vector<fs::path> files;
  for (const Json& file : tree["weight_map"]) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    // Only files beside the index: a folder from elsewhere names nothing outside itself.
    if (name.empty() || fs::path(name).filename() != name || name == "." || name == "..")
      refuse("names of files in the same folder");
    files.push_back(index.parent_path() / name);
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

class Shards : public TensorFile {
 public:
  Shards(const fs::path& index, const std::vector<fs::path>& files) {
    path_ = index;
    for (const fs::path& file : files) {
      if (!is_file(file)) {
        throw Error(ErrorKind::io, fmt::format("`{}` names the shard `{}`, which is not there",
                                               index.string(), file.filename().string()))
            .hint("copy the whole folder again");
      }
      shards_.push_back(open_tensor_file(file));
      for (const TensorEntry& entry : shards_.back()->entries()) {
        entries_.push_back(entry);
        owner_.push_back(shards_.size() - 1);
      }
    }
    format_ = fmt::format("{}, {} shards", shards_.front()->format(), shards_.size());
    metadata_ = shards_.front()->metadata();
    index_names();
  }

 private:
  at::Tensor read_entry(size_t place) const override {
    return shards_[owner_[place]]->read(entries_[place].name);
  }
  std::vector<std::unique_ptr<TensorFile>> shards_;
  std::vector<size_t> owner_;  // of each entry
};

}  // namespace

bool MusicgenFolder::looks_like(const fs::path& folder) {
  if (!is_file(folder / "config.json")) return false;
  try {
    const Json tree = Json::parse(read_file(folder / "config.json"), nullptr, false);
    return tree.is_object() && tree.contains("model_type") && tree["model_type"].is_string() &&
           tree["model_type"].get<std::string>().starts_with("musicgen");
  } catch (const Error&) {
    return false;
  }
}

MusicgenFolder MusicgenFolder::open(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw Error(ErrorKind::io,
                fmt::format("there is no folder `{}`; {}", folder.string(), whole_folder));
  }
  MusicgenFolder found;
  found.path = folder;
  if (!is_file(folder / "config.json")) fail_missing(folder, "config.json");
  found.config = MusicgenConfig::read(folder);
  for (const char* name : {"model.safetensors", "pytorch_model.bin"}) {
    if (is_file(folder / name)) {
      found.weights_files = {folder / name};
      break;
    }
    const fs::path index = folder / (std::string(name) + ".index.json");
    if (!is_file(index)) continue;
    found.weights_index = index;
    found.weights_files = shards_of(index);
    break;
  }
  if (found.weights_files.empty()) fail_missing(folder, "weights");
  found.tokenizer_file = folder / "tokenizer.json";
  if (!is_file(found.tokenizer_file)) fail_missing(folder, "tokenizer.json");
  return found;
}

std::unique_ptr<TensorFile> MusicgenFolder::open_weights() const {
  if (weights_index.empty()) return open_tensor_file(weights_files.front());
  return std::make_unique<Shards>(weights_index, weights_files);
}

}  // namespace tandem
