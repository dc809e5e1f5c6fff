#include "cli/stage_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "cli/session.h"
#include "tandem/error.h"
#include "tandem/trainer.h"
#include "util/log.h"

namespace tandem {
namespace {

constexpr std::array of_all = {"training.stage",
                               "training.stage_steps",
                               "training.multi_gpu",
                               "training.visible_gpus",
                               "training.enable_memory_isolation",
                               "training.data_gpu_memory",
                               "training.model_gpu_memory",
                               "data.data_gpu",
                               "data.model_gpu",
                               "model.size",
                               "model.pretrained",
                               "paths.checkpoint_dir",
                               "observe.metrics_port"};

struct Words {
  std::vector<std::string> common;
  std::map<std::string, std::vector<std::string>> of_stage;
};

Words sorted(const std::vector<std::string>& words) {
  Words by_stage;
  for (const std::string& word : words) {
    const std::string stage = word.substr(0, std::min(word.find(':'), word.find('=')));
    const bool own = word.size() > stage.size() && word[stage.size()] == ':' &&
                     std::ranges::count(voice_stages(), stage) > 0;
    own ? by_stage.of_stage[stage].push_back(word.substr(stage.size() + 1))
        : by_stage.common.push_back(word);
  }
  return by_stage;
}

// Data that can only be speech asks for a voice where no stage was named.
void choose_stage(Resolved& resolved) {
  namespace fs = std::filesystem;
  Source& source = resolved.sources["training.stage"];
  if (source.layer != Source::Layer::standard || !resolved.config.data.train_data) return;
  const fs::path data = *resolved.config.data.train_data;
  std::error_code ignored;
  const std::set<std::string> of_speech = {".index", ".csv", ".tsv", ".jsonl", ".tar"};
  if (!fs::is_directory(data, ignored) && !of_speech.contains(data.extension().string())) return;
  const bool pretrained = resolved.config.model.pretrained.has_value();
  resolved.config.training.stage = pretrained ? "gpt" : "all";
  source = {Source::Layer::preset, pretrained ? "speech and a pretrained model" : "speech"};
  log_info("stage {}, as the data is {}; --stage names another", resolved.config.training.stage,
           source.where);
}

}  // namespace

StageSettings resolve_stage_settings(const Arguments& arguments) {
  const Words words = sorted(arguments.rest);
  const auto with = [&](const std::vector<std::string>& more) {
    Arguments asked = arguments;
    asked.rest = words.common;
    asked.rest.insert(asked.rest.end(), more.begin(), more.end());
    return resolve(settings_request(asked));
  };
  StageSettings settings{.whole = with({}), .of_stage = {}};
  choose_stage(settings.whole);
  const std::string stage = settings.whole.config.training.stage;
  if (const auto own = words.of_stage.find(stage); own != words.of_stage.end()) {
    settings.whole = with(own->second);
    choose_stage(settings.whole);
  }
  for (const std::string& notice : settings.whole.notices) log_info("note: {}", notice);
  if (stage != "all") return settings;
  for (const auto& [name, own] : words.of_stage) {
    Resolved resolved = with(own);
    choose_stage(resolved);
    for (const char* key : of_all) {
      if (resolved.sources[key].where == settings.whole.sources[key].where) continue;
      throw Error(ErrorKind::config,
                  fmt::format("`{}:` sets {}, which holds for all stages", name, key))
          .hint(fmt::format("write it without `{}:`", name));
    }
    settings.of_stage.emplace(name, std::move(resolved));
  }
  return settings;
}

}  // namespace tandem
