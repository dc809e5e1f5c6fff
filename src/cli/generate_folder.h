// The folder that a run of `tandem generate` writes into, and what it keeps there about itself:
//
//   config.yaml   every setting of the run
//   run.json      the recipe (all that decides which clips come out), how many clips that makes,
//   when
//                 it was started last, and whether it is finished
//
// The same recipe makes the same clips, so the same command goes on in its newest folder, finished
// or not; a named folder is always used. What is done there is not made again.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace tandem {

struct GenerateFolderChoice {
  std::filesystem::path parent;            // <data_dir>/<model>
  std::optional<std::string> run_id = {};  // a name in it; none: one of the recipe, or the time
  std::filesystem::path folder = {};       // named with -o; empty: by the two above
  nlohmann::json recipe = {};
  int64_t clips = 0;   // of all shards
  bool fresh = false;  // always a new one
};

class GenerateFolder {
 public:
  // Makes it. Throws Error(io).
  GenerateFolder(const GenerateFolderChoice& choice, const std::string& settings_yaml);

  const std::filesystem::path& path() const { return path_; }
  bool goes_on() const { return goes_on_; }  // something was there
  void finish();                             // all clips are there

 private:
  void write(bool finished) const;
  std::filesystem::path path_;
  nlohmann::json recipe_;
  int64_t clips_;
  double started_;  // seconds since 1970
  bool goes_on_ = false;
};

}  // namespace tandem
