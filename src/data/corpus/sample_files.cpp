#include "data/corpus/sample_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "data/corpus/clip_object.h"
#include "data/corpus/clip_table.h"
#include "data/corpus/folder_walk.h"
#include "data/corpus/tar_archive.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

constexpr int64_t largest_text = 1 << 20;  // bytes of one clip's text

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return trim(text);
}

// LibriTTS has two texts; the normalised one is what is spoken. Empty when there is none.
std::string text_file_of(const std::string& id, const std::unordered_set<std::string>& names) {
  for (const char* ending : {".normalized.txt", ".txt", ".TXT"}) {
    if (names.contains(id + ending)) return id + ending;
  }
  return "";
}

std::string read_text(const fs::path& path) {
  std::error_code ignored;
  if (fs::file_size(path, ignored) > static_cast<uintmax_t>(largest_text)) {
    throw Error(ErrorKind::data, "the text is longer than a mebibyte");
  }
  return one_line(load_table(path.string()).text);
}

// Folders are speakers when there are several and each holds several clips.
void speakers_from_folders(std::vector<FoundClip>& clips) {
  std::map<std::string, int64_t> counts;
  const auto folder_of = [](const FoundClip& found) {
    return fs::path(found.clip.path).parent_path().filename().string();
  };
  for (const FoundClip& found : clips) ++counts[folder_of(found)];
  const bool several = std::all_of(counts.begin(), counts.end(), [](const auto& count) {
    return !count.first.empty() && count.second > 1;
  });
  if (counts.size() < 2 || !several) return;
  for (FoundClip& found : clips) found.clip.speaker = folder_of(found);
}

// One sample of a tar: the members that share a key.
struct Sample {
  FoundClip found;
  bool has_sound = false;
};

// `a/b.seg.wav` has the key `a/b` and the ending `seg.wav`.
std::pair<std::string, std::string> key_and_ending(const std::string& name) {
  const size_t dot = name.find('.', name.rfind('/') + 1);
  if (dot == std::string::npos) return {name, ""};
  return {name.substr(0, dot), lower(name.substr(dot + 1))};
}

class TarSamples {
 public:
  TarSamples(Dataset& dataset, std::string path)
      : dataset_(dataset), path_(std::move(path)), tar_(path_) {
    relative_ = fs::path(path_).lexically_relative(dataset.layout.root).string();
  }

  void read() {
    const std::string ended = tar_.walk([this](const TarMember& member) { take(member); });
    if (!ended.empty()) dataset_.bad_rows.push_back({path_, ended});
    for (const std::string& key : order_) {
      Sample& sample = samples_[key];
      if (sample.has_sound) {
        dataset_.clips.push_back(std::move(sample.found));
      } else {
        bad(key, "no sound has this key");
      }
    }
  }

 private:
  void bad(const std::string& name, const std::string& sentence) {
    dataset_.bad_rows.push_back({path_ + ":" + name, sentence});
  }

  void take(const TarMember& member) {
    const auto [key, ending] = key_and_ending(member.name);
    const bool sound = has_audio_ending("." + ending);
    const bool text = ending.ends_with("txt"), json = ending.ends_with("json");
    if (!sound && !text && !json) return;
    const auto [at, fresh] = samples_.try_emplace(key);
    if (fresh) order_.push_back(key);
    sound ? take_sound(member, key, at->second) : take_text(member, json, at->second);
  }

  void take_sound(const TarMember& member, const std::string& key, Sample& sample) {
    if (sample.has_sound) return bad(member.name, "the sample has two sounds; the first is used");
    sample.has_sound = true;
    Clip& clip = sample.found.clip;
    clip.id = key;
    clip.path = relative_;
    clip.offset = member.offset;
    clip.bytes = member.bytes;
  }

  void take_text(const TarMember& member, bool json, Sample& sample) {
    if (member.bytes > largest_text) return bad(member.name, "the text is longer than a mebibyte");
    std::string bytes = tar_.read(member);
    if (bytes.find('\0') != std::string::npos || find_bad_utf8(bytes) != std::string::npos) {
      return bad(member.name, "the text is not UTF-8");
    }
    if (!json) {
      sample.found.clip.text = one_line(std::move(bytes));
      return;
    }
    FoundClip described = sample.found;
    const std::string wrong = read_clip_object(bytes, described);
    if (!wrong.empty()) return bad(member.name, wrong);
    Clip& clip = sample.found.clip;
    if (clip.text.empty()) clip.text = one_line(described.clip.text);
    clip.speaker = described.clip.speaker;
    clip.language = described.clip.language;
  }

  Dataset& dataset_;
  std::string path_, relative_;
  TarReader tar_;
  std::unordered_map<std::string, Sample> samples_;
  std::vector<std::string> order_;
};

}  // namespace

void read_pairs(Dataset& dataset) {
  const std::vector<std::string> files = files_below(dataset.layout.root);
  const std::unordered_set<std::string> names(files.begin(), files.end());
  for (const std::string& path : files) {
    if (!has_audio_ending(path)) continue;
    FoundClip found;
    found.clip.id = without_audio_ending(path);
    found.clip.path = path;
    const std::string text = text_file_of(found.clip.id, names);
    try {
      if (!text.empty()) found.clip.text = read_text(fs::path(dataset.layout.root) / text);
      dataset.clips.push_back(std::move(found));
    } catch (const Error& error) {
      dataset.bad_rows.push_back({text, error.what()});
    }
  }
  speakers_from_folders(dataset.clips);
}

void read_tars(Dataset& dataset) {
  for (const std::string& path : dataset.layout.files) TarSamples(dataset, path).read();
}

}  // namespace tandem
