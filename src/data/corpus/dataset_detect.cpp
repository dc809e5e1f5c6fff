#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "data/corpus/clip_table.h"
#include "data/corpus/dataset.h"
#include "data/corpus/folder_walk.h"
#include "data/corpus/index_format.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

constexpr const char* table_names[] = {"metadata_train.csv", "metadata.csv", "metadata.tsv",
                                       "metadata.jsonl", "metadata_eval.csv"};

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

LayoutKind kind_of(const TableKind& table, const std::string& name) {
  if (table.form == TableForm::bars) {
    const bool split = name.starts_with("metadata_train") || name.starts_with("metadata_eval");
    return split ? LayoutKind::originals : LayoutKind::ljspeech;
  }
  if (table.file_column == "file_name") return LayoutKind::audiofolder;
  if (table.form == TableForm::objects) return LayoutKind::nemo;
  return table.file_column == "audio_file" ? LayoutKind::coqui : LayoutKind::table;
}

std::string form_of(const TableKind& table) {
  switch (table.form) {
    case TableForm::bars: return "has lines `id|text`";
    case TableForm::header: return "has a header with `" + table.file_column + "`";
    case TableForm::objects: return "has one object a line with `" + table.file_column + "`";
  }
  return "";
}

DatasetLayout of_table(const fs::path& path) {
  const TextTable table = load_table(path.string());
  const TableKind kind = recognise_table(table);
  if (kind.form == TableForm::objects && kind.file_column.empty()) {
    throw Error(ErrorKind::data,
                fmt::format("{}:1: no JSON object that names a file; expected `{}`", path.string(),
                            join(file_column_names(), "` or `")));
  }
  const std::string name = path.filename().string();
  DatasetLayout layout;
  layout.kind = kind_of(kind, name);
  layout.root = path.parent_path().string();
  layout.files = {path.string()};
  layout.why = fmt::format("{}: `{}` {}", to_string(layout.kind), name, form_of(kind));
  std::error_code ignored;
  if (kind.form == TableForm::bars) {
    const bool wavs = fs::is_directory(path.parent_path() / "wavs", ignored);
    layout.why += wavs ? ", the sounds are in `wavs`" : ", the sounds are beside it";
  }
  return layout;
}

DatasetLayout of_tars(const std::string& root, std::vector<std::string> tars) {
  DatasetLayout layout;
  layout.kind = LayoutKind::webdataset;
  layout.root = root;
  layout.why = tars.size() == 1 ? fmt::format("{}: `{}` is a tar", to_string(layout.kind),
                                              fs::path(tars[0]).filename().string())
                                : fmt::format("{}: the folder holds {} tar files",
                                              to_string(layout.kind), tars.size());
  layout.files = std::move(tars);
  return layout;
}

// Manifests have no fixed name: whatever holds objects with `audio_filepath` is one.
DatasetLayout of_manifests(const fs::path& folder, const std::vector<std::string>& manifests) {
  std::vector<std::string> chosen = manifests;
  if (chosen.size() > 1) {
    std::erase_if(chosen, [](const std::string& path) {
      return fs::path(path).filename().string().find("train") == std::string::npos;
    });
  }
  if (chosen.size() == 1) return of_table(chosen[0]);
  std::vector<std::string> names;
  for (const std::string& path : manifests) names.push_back(fs::path(path).filename().string());
  throw Error(ErrorKind::data, fmt::format("`{}` holds several manifests: `{}`", folder.string(),
                                           join(names, "`, `")))
      .hint("name one: tandem prepare \"" + manifests[0] + "\"");
}

// Where the user may have meant to point: one folder down.
std::string hint_below(const fs::path& folder) {
  for (const std::string& below : folders_in(folder.string())) {
    for (const char* name : table_names) {
      if (is_file(fs::path(below) / name)) return "tandem prepare \"" + below + "\"";
    }
  }
  return "expected metadata.csv and wavs/, a manifest, tar files, or sounds with a .txt each";
}

DatasetLayout of_folder(const fs::path& folder) {
  for (const char* name : table_names) {
    if (!is_file(folder / name)) continue;
    DatasetLayout layout = of_table(folder / name);
    const bool train = std::string(name) == "metadata_train.csv";
    if (train && is_file(folder / "metadata_eval.csv")) {
      layout.why += fmt::format("; `metadata_eval.csv` is kept apart (tandem prepare \"{}\")",
                                (folder / "metadata_eval.csv").string());
    }
    return layout;
  }
  std::vector<std::string> manifests, tars;
  for (const std::string& path : files_in(folder.string())) {
    const std::string low = lower(path);
    const bool manifest = low.ends_with(".jsonl") ||
                          (low.ends_with(".json") && low.find("manifest") != std::string::npos);
    if (manifest) manifests.push_back(path);
    if (low.ends_with(".tar")) tars.push_back(path);
  }
  if (!manifests.empty()) return of_manifests(folder, manifests);
  if (!tars.empty()) return of_tars(folder.string(), tars);
  const FolderCount count = count_files(folder.string());
  if (count.sounds > 0 && count.texts > 0) {
    return {LayoutKind::pairs,
            folder.string(),
            {},
            fmt::format("{}: {} sounds and {} text files, in pairs of one name",
                        to_string(LayoutKind::pairs), count.sounds, count.texts)};
  }
  if (count.sounds > 0) {
    throw Error(ErrorKind::data,
                fmt::format("`{}` holds {} sounds but nothing that says what is spoken in them",
                            folder.string(), count.sounds))
        .hint(hint_below(folder));
  }
  throw Error(ErrorKind::data,
              fmt::format("`{}` holds no sound and no table of clips", folder.string()))
      .hint(hint_below(folder));
}

}  // namespace

const char* to_string(LayoutKind kind) {
  switch (kind) {
    case LayoutKind::ljspeech: return "LJSpeech";
    case LayoutKind::originals: return "id|text tables";
    case LayoutKind::coqui: return "Coqui";
    case LayoutKind::audiofolder: return "Hugging Face audiofolder";
    case LayoutKind::table: return "table";
    case LayoutKind::nemo: return "NeMo manifest";
    case LayoutKind::pairs: return "sound and text files";
    case LayoutKind::webdataset: return "WebDataset";
    case LayoutKind::index: return "index";
  }
  return "";
}

DatasetLayout detect_dataset(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    const bool missing = status.type() == fs::file_type::not_found;
    throw Error(ErrorKind::io, fmt::format("cannot read `{}`: {}", path,
                                           missing ? "no such file or folder" : error.message()))
        .hint("give the folder of the dataset, or one of its tables");
  }
  const fs::path place = fs::absolute(path).lexically_normal();
  if (fs::is_directory(status)) {
    return of_folder(place.has_filename() ? place : place.parent_path());
  }
  if (!fs::is_regular_file(status)) {
    throw Error(ErrorKind::data, fmt::format("`{}` is neither a file nor a folder", path));
  }
  if (looks_like_index(place.string())) {
    return {LayoutKind::index,
            place.parent_path().string(),
            {place.string()},
            fmt::format("index: `{}` was written by tandem prepare", place.filename().string())};
  }
  if (lower(place.string()).ends_with(".tar")) {
    return of_tars(place.parent_path().string(), {place.string()});
  }
  if (has_audio_ending(place.string())) {
    throw Error(ErrorKind::data, fmt::format("`{}` is one sound; expected a dataset", path))
        .hint("give the folder that holds the sounds and their texts");
  }
  return of_table(place);
}

}  // namespace tandem
