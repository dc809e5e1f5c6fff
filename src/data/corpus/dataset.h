// Any folder of speech as a list of clips: which layout it has is found out and said.
//
//   const DatasetLayout layout = detect_dataset("LJSpeech-1.1");
//   log_info("{}", layout.why);
//   const Dataset dataset = read_dataset(layout, {.language = "en"});
//
// Sounds are not opened here.
#pragma once

#include <string>
#include <vector>

#include "data/corpus/found_clip.h"

namespace tandem {

enum class LayoutKind {
  ljspeech,     // metadata.csv: id|raw|normalised, and wavs/
  originals,    // metadata_train.csv or metadata_eval.csv of the same form
  coqui,        // audio_file|text|speaker_name[|emotion_name] with header
  audiofolder,  // metadata.csv or .jsonl with file_name
  table,        // another table whose header names files and text
  nemo,         // a manifest: one object a line with audio_filepath
  pairs,        // a sound and a .txt of the same name, in any depth
  webdataset,   // tar files with key.wav and key.txt or key.json
  index         // an index of ours
};
const char* to_string(LayoutKind kind);  // "LJSpeech", "NeMo manifest", ...

struct DatasetLayout {
  LayoutKind kind = LayoutKind::ljspeech;
  std::string root;                // the folder paths are relative to
  std::vector<std::string> files;  // tables or tars to read, full paths
  std::string why;                 // one line for the user
};

// Throws Error(io) for a path that is not there, Error(data) for one that holds no dataset.
DatasetLayout detect_dataset(const std::string& path);

struct DatasetOptions {
  std::string language = {};         // of every clip; empty: as the dataset says, or unknown
  std::string speaker_pattern = {};  // see SpeakerRule
};

struct Dataset {
  DatasetLayout layout;
  std::vector<FoundClip> clips;
  std::vector<BadRow> bad_rows;
  std::vector<std::string> notices;  // sentences for the user
};

// Throws Error(io), Error(data) with file and line, Error(corrupt) for an index.
Dataset read_dataset(const DatasetLayout& layout, const DatasetOptions& options = {});

}  // namespace tandem
