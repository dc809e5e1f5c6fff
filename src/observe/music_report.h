// report.html of a folder of clips: one file that shows it all, without the network: figures, how
// busy the devices were, a sample of the clips to look at and to listen to, what failed, the plan,
// the settings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "observe/report_html.h"
#include "observe/timeline.h"

namespace tandem {

struct MusicReportClip {
  std::string name, text;
  std::filesystem::path file;
  std::string error;  // of one that failed; empty: it is there
};

struct MusicReport {
  std::string title;
  std::string state, state_words;  // "finished", "stopped" or "failed", and a sentence
  std::vector<Tile> tiles;
  std::vector<std::pair<std::string, std::string>> hardware;  // "/GPU:0" -> "NVIDIA H200"
  std::vector<TimelineReading> timeline;
  std::vector<MusicReportClip> clips;
  std::vector<std::pair<std::string, std::string>> plan;
  std::string settings;  // YAML
  // Clips shown, evenly spread over all; bytes of sound embedded. What does not fit is shown as a
  // picture alone.
  size_t most_clips = 12;
  size_t most_bytes = size_t{13} << 20;
};

// Clips that cannot be read are passed over: a report is no check.
std::string make_music_report(const MusicReport& report);

}  // namespace tandem
