// Everything a run of `tandem generate` knows before it loads weights: captions and their ids, the
// devices, the batch that fits, the seconds it should take.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "cli/generate_options.h"
#include "generate/music_plan.h"
#include "models/musicgen/musicgen_folder.h"

namespace tandem {

class LogicalDevice;
class Tokenizer;

// Ids of every caption, made by several threads at once. Thread-safe once made.
class CaptionIds {
 public:
  CaptionIds() = default;
  // `longest`: ids of a caption at most.
  CaptionIds(const Captions& captions, const MusicgenFolder& model, int64_t longest,
             int64_t threads);
  const std::vector<int64_t>& of(const std::string& caption) const { return ids_.at(caption); }
  int64_t longest() const { return longest_; }

 private:
  std::unordered_map<std::string, std::vector<int64_t>> ids_;
  int64_t longest_ = 1;
};

struct GeneratePlan {
  MusicgenFolder model;
  Captions captions;
  CaptionIds ids;
  MusicOptions music;
  MusicEngineOptions engine;  // precision other than "auto"
  std::vector<LogicalDevice*> devices;
  std::vector<MusicPlanDevice> planned_devices;
  int64_t clips = 0;  // of this shard
  MusicPlan plan;
};

// Devices must be configured. Throws what reading the model's folder, the captions or planning
// throws.
GeneratePlan make_generate_plan(const GenerateRequest& request);

// The contract's lines (004-6, 004-7), and what the plan noted.
void announce(const GeneratePlan& plan);

// A table for people; the same as JSON.
std::vector<std::pair<std::string, std::string>> plan_rows(const GenerateRequest& request,
                                                           const GeneratePlan& plan);
std::string plan_text(const GenerateRequest& request, const GeneratePlan& plan);
std::string plan_json(const GenerateRequest& request, const GeneratePlan& plan);

}  // namespace tandem
