// A folder of clips held against its manifest.jsonl: is each clip there, whole, as long as it
// should be, and a sound? Reads the folders of `tandem generate` (sounds in audio_samples) and of
// `tandem synthesize` (sounds beside the manifest), and those other programs wrote alike.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "audio/signal/signal_facts.h"

namespace tandem {

struct ClipLimits {
  double full_scale = 0.01;  // more samples at full scale than this share: clipped
  double offset = 0.05;      // a mean beyond this, either way
  double silence = 0.9;      // a share of silent windows over this
  double length = 0.001;     // seconds the length may differ from the manifest's
};

struct ClipFinding {
  std::string file;    // "manifest.jsonl" where the manifest itself is wrong
  std::string fault;   // "missing", "extra", "unreadable", "not finite", "length", "format",
                       // "changed", "silent", "clipped", "offset", "twice", "failed", "unfinished"
  std::string detail;  // a sentence without its end
};

struct VerifiedClip {
  std::string id, text, file;
  std::filesystem::path path;
  bool listed = false;    // in the manifest
  bool measured = false;  // the rest is known
  double seconds = 0;
  int64_t channels = 0, sample_rate = 0;
  SignalFacts signal;
};

struct VerifyReport {
  std::filesystem::path folder;       // with the manifest
  std::vector<VerifiedClip> clips;    // the manifest's first, in its order
  std::vector<ClipFinding> findings;  // in the order of clips
  int64_t listed = 0;                 // entries of the manifest
  int64_t right() const;              // clips without a finding
};

struct VerifyOptions {
  ClipLimits limits = {};
  int64_t threads = 0;  // 0: as many as there are processors for workers
  // From the calling thread, whenever a clip is done.
  std::function<void(int64_t done, int64_t total)> on_progress = {};
  std::function<bool()> stop = [] { return false; };
};

// Throws Error(io) when there is no such folder, Error(data) when it holds neither a manifest nor
// sounds, Error(interrupted) after `stop`.
VerifyReport verify_clips(const std::filesystem::path& folder, const VerifyOptions& options = {});

// Files that look like sound, by name, in order; folders are not entered.
std::vector<std::filesystem::path> sounds_in(const std::filesystem::path& folder);

}  // namespace tandem
