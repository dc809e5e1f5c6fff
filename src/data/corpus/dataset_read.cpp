#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "data/corpus/clip_table.h"
#include "data/corpus/dataset.h"
#include "data/corpus/sample_files.h"
#include "data/corpus/speakers.h"
#include "tandem/error.h"
#include "text/clean.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

// Finds the sound a table names: as it stands, or in the folders and with the endings people use.
// What fitted the row before is tried first, so that a row costs one question to the disk.
class SoundPlaces {
 public:
  explicit SoundPlaces(std::string root) : root_(std::move(root)) {
    for (const char* folder : {"", "wavs/", "clips/", "wav/", "audio/"}) {
      places_.push_back({folder, ""});
      for (const std::string& ending : audio_endings()) places_.push_back({folder, ending});
    }
  }
  std::string find(const std::string& name) {
    for (size_t i = 0; i < places_.size(); ++i) {
      const std::string path = places_[i].folder + name + places_[i].ending;
      std::error_code ignored;
      if (!fs::is_regular_file(fs::path(root_) / path, ignored)) continue;
      std::rotate(places_.begin(), places_.begin() + static_cast<std::ptrdiff_t>(i),
                  places_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return path;
    }
    return has_audio_ending(name) ? name : "wavs/" + name + ".wav";
  }

 private:
  struct Place {
    std::string folder, ending;
  };
  std::string root_;
  std::vector<Place> places_;
};

std::string relative_where_possible(const std::string& path, const std::string& root) {
  if (!fs::path(path).is_absolute()) return path;
  const fs::path relative = fs::path(path).lexically_normal().lexically_relative(root);
  return relative.empty() || relative.begin()->string() == ".." ? path : relative.string();
}

void read_tables(Dataset& dataset) {
  SoundPlaces places(dataset.layout.root);
  for (const std::string& file : dataset.layout.files) {
    const TextTable table = load_table(file);
    Rows rows = read_rows(table, recognise_table(table));
    for (FoundClip& found : rows.clips) {
      std::string& path = found.clip.path;
      path = fs::path(path).is_absolute() ? relative_where_possible(path, dataset.layout.root)
                                          : places.find(path);
    }
    std::move(rows.clips.begin(), rows.clips.end(), std::back_inserter(dataset.clips));
    std::move(rows.bad.begin(), rows.bad.end(), std::back_inserter(dataset.bad_rows));
  }
}

void read_index(Dataset& dataset) {
  const ClipIndex index = ClipIndex::open(dataset.layout.files.front());
  dataset.layout.root = index.root();
  for (int64_t row = 0; row < index.size(); ++row) {
    const ClipView view = index[row];
    FoundClip found;
    Clip& clip = found.clip;
    clip.id = view.id;
    clip.text = view.text;
    clip.speaker = view.speaker;
    clip.language = view.language;
    clip.path = view.path;
    clip.offset = view.offset;
    if (view.offset > 0) clip.bytes = view.bytes;
    if (view.part && view.sample_rate > 0) {
      found.start = static_cast<double>(view.first_frame) / view.sample_rate;
      found.seconds = view.seconds();
    }
    dataset.clips.push_back(std::move(found));
  }
}

// The code the text layer knows, or what the dataset says in lower case.
std::string language_code(const std::string& given) {
  if (given.empty()) return "";
  try {
    return find_language(given).code;
  } catch (const Error&) {
    return lower(given);
  }
}

void set_languages(Dataset& dataset, const std::string& language) {
  const std::string wanted = language.empty() ? "" : find_language(language).code;
  std::unordered_map<std::string, std::string> codes;
  int64_t unknown = 0;
  for (FoundClip& found : dataset.clips) {
    std::string& spoken = found.clip.language;
    if (wanted.empty()) {
      auto [at, fresh] = codes.try_emplace(spoken);
      if (fresh) at->second = language_code(spoken);
      spoken = at->second;
    } else {
      spoken = wanted;
    }
    unknown += spoken.empty();
  }
  if (unknown > 0) {
    dataset.notices.push_back(fmt::format(
        "the language of {} clips is not known, so their text is not cleaned; give --language",
        unknown));
  }
}

void name_speakers(Dataset& dataset, const std::string& pattern) {
  const bool named =
      std::any_of(dataset.clips.begin(), dataset.clips.end(),
                  [](const FoundClip& found) { return !found.clip.speaker.empty(); });
  if (named && pattern.empty()) return;
  const int64_t guessed = guess_speakers(dataset.clips, SpeakerRule(pattern));
  if (guessed > 0) {
    dataset.notices.push_back(
        fmt::format("speakers read from the ids: {}; --speaker-pattern changes how", guessed));
  }
}

}  // namespace

Dataset read_dataset(const DatasetLayout& layout, const DatasetOptions& options) {
  Dataset dataset;
  dataset.layout = layout;
  switch (layout.kind) {
    case LayoutKind::pairs: read_pairs(dataset); break;
    case LayoutKind::webdataset: read_tars(dataset); break;
    case LayoutKind::index: read_index(dataset); break;
    default: read_tables(dataset); break;
  }
  if (dataset.clips.empty()) {
    const std::string first =
        dataset.bad_rows.empty()
            ? ""
            : fmt::format("; the first of {} bad rows, {}: {}", dataset.bad_rows.size(),
                          dataset.bad_rows[0].where, dataset.bad_rows[0].sentence);
    const std::string& where = layout.files.empty() ? layout.root : layout.files.front();
    throw Error(ErrorKind::data, fmt::format("`{}` holds no clip{}", where, first));
  }
  set_languages(dataset, options.language);
  if (layout.kind != LayoutKind::index) name_speakers(dataset, options.speaker_pattern);
  return dataset;
}

}  // namespace tandem
