#include "cli/generate_folder.h"

#include <ctime>

#include "observe/run_events.h"
#include "util/atomic_file.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

constexpr const char* record = "run.json";

bool has_recipe(const fs::path& folder, const nlohmann::json& recipe) {
  if (!fs::exists(folder / record)) return false;
  const auto told = nlohmann::json::parse(read_file(folder / record), nullptr, false);
  return told.is_object() && told.value("recipe", nlohmann::json()) == recipe;
}

std::optional<fs::path> newest_of_recipe(const GenerateFolderChoice& choice) {
  std::optional<fs::path> newest;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(choice.parent, ignored)) {
    if (!has_recipe(entry.path(), choice.recipe)) continue;
    if (!newest || fs::last_write_time(*newest / record, ignored) <
                       fs::last_write_time(entry.path() / record, ignored))
      newest = entry.path();
  }
  return newest;
}

fs::path unused(const fs::path& wanted) {
  fs::path next = wanted;
  for (int i = 2; fs::exists(next); ++i) next = wanted.string() + "-" + std::to_string(i);
  return next;
}

std::string time_as_name() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  char name[32];
  std::strftime(name, sizeof name, "%Y-%m-%d_%H-%M-%S", localtime_r(&now, &local));
  return name;
}

fs::path chosen(const GenerateFolderChoice& choice) {
  if (!choice.folder.empty()) return choice.fresh ? unused(choice.folder) : choice.folder;
  if (choice.run_id) {
    const fs::path name = *choice.run_id;
    return choice.fresh ? unused(choice.parent / name) : choice.parent / name;
  }
  if (!choice.fresh) {
    if (const auto newest = newest_of_recipe(choice)) return *newest;
  }
  return unused(choice.parent / time_as_name());
}

}  // namespace

GenerateFolder::GenerateFolder(const GenerateFolderChoice& choice, const std::string& settings_yaml)
    : path_(chosen(choice)),
      recipe_(choice.recipe),
      clips_(choice.clips),
      started_(seconds_since_1970()) {
  goes_on_ = fs::exists(path_ / record);
  make_folder(path_);
  write_file_atomically(path_ / "config.yaml", settings_yaml);
  write(false);
}

void GenerateFolder::finish() { write(true); }

void GenerateFolder::write(bool finished) const {
  const nlohmann::ordered_json told = {
      {"finished", finished}, {"clips", clips_}, {"started", started_}, {"recipe", recipe_}};
  write_file_atomically(path_ / record,
                        told.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace tandem
