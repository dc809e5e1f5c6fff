// Looks at every clip of a dataset: opens and decodes the sounds in parallel, cleans and counts the
// text, and judges which clips are kept. One bad file never stops it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/corpus/dataset.h"
#include "data/corpus/drop_reason.h"
#include "data/corpus/scan_journal.h"
#include "text/tokenizer.h"

namespace tandem {

// What is kept. The defaults are those of XTTS v2's recipe.
struct ClipLimits {
  double min_seconds = 0.5, max_seconds = 11.6;
  std::optional<int> max_tokens = {};  // default: 200 ids, or 400 characters without a tokenizer
  double outlier_z = 6;                // robust z-score of log(tokens a second); 0: keep them
};

struct ScanProgress {
  int64_t done = 0, total = 0;
  int64_t reused = 0;  // known from the journal
  double clips_per_second = 0, seconds_left = 0;
};

// Made from the cleaned texts of all sounds that are good; nullptr counts characters.
using TokenizerMaker =
    std::function<std::shared_ptr<const Tokenizer>(const std::vector<std::string>& texts)>;

struct ScanOptions {
  ClipLimits limits = {};
  bool quick = false;  // headers only: no statistics, no fingerprints
  int workers = 0;     // 0: as many as the machine has cores
  TokenizerMaker tokenizer = {};
  ScanJournal* journal = nullptr;
  std::function<void(const ScanProgress&)> on_progress = {};  // from the calling thread
};

struct ScannedClip {
  Clip clip;
  JournalRecord sound;
  DropReason reason = DropReason::none;
  std::string detail;  // of the reason
  std::string cleaned_text;
  bool unknown_tokens = false;
  bool kept() const { return reason == DropReason::none; }
  const SoundFacts& facts() const { return sound.facts; }
};

struct Scan {
  std::vector<ScannedClip> clips;  // in the order of the dataset
  std::vector<BadRow> bad_rows;
  int64_t reused = 0;  // sounds known from the journal
  double seconds = 0;
  bool characters = false;  // `tokens` of the clips are characters

  int64_t count(DropReason reason) const;
  int64_t faults() const;  // clips and rows that are broken
  std::vector<Clip> kept() const;
};

// Throws Error(interrupted) or Error(terminated) when a signal asked to stop, Error(io) when the
// journal cannot be written.
Scan scan_corpus(const Dataset& dataset, const ScanOptions& options);

// The reasons that need no sound: length, text, duplicates, outliers. Part of `scan_corpus`.
void judge_clips(std::vector<ScannedClip>& clips, const ClipLimits& limits, int max_tokens);

}  // namespace tandem
