// What a scan found, for people and programs: a table, a JSON document, a page.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/corpus/scan.h"

namespace tandem {

struct Percentiles {
  double least = 0, p5 = 0, p50 = 0, p95 = 0, most = 0, mean = 0;
};
Percentiles percentiles_of(std::vector<double> values);

struct Share {
  int64_t clips = 0;
  double hours = 0;
};

// Over the clips that are kept, except where it says otherwise.
struct CorpusSummary {
  std::string layout;  // why the dataset was read as it was
  int64_t found = 0;   // clips and bad rows the dataset names
  Share kept;
  std::map<std::string, Share> speakers;  // "" : without a name
  std::map<std::string, Share> languages, formats;
  std::map<int32_t, Share> rates, channels;
  Percentiles seconds, tokens, loudness;        // loudness in dBFS
  bool characters = false;                      // `tokens` counts characters
  bool decoded = false;                         // the figures of the next two lines are known
  int64_t clipped = 0;                          // clips with clipping, which are kept
  int64_t silent = 0;                           // clips without any sound, which are kept
  int64_t off_centre = 0;                       // clips with a DC offset above 1 %
  double silence = 0, clipping = 0;             // mean shares
  std::map<std::string, int64_t> dropped;       // by reason, over all that was found
  std::map<std::string, std::string> examples;  // one for each reason: name and detail
  int64_t dropped_clips() const;
};
CorpusSummary summarise(const Dataset& dataset, const Scan& scan);

std::string to_table(const CorpusSummary& summary);
nlohmann::ordered_json to_json(const CorpusSummary& summary);

// Path, reason, detail of every clip that is not kept; tab, line end and backslash as \t, \n, \\.
std::string dropped_table(const Scan& scan);

}  // namespace tandem
