#include "models/xtts/trained_stages.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tandem/error.h"
#include "util/atomic_file.h"

namespace tandem {

std::set<std::string> trained_stages(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "trained.json";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return {"dvae", "gpt", "decoder"};
  const auto json = nlohmann::json::parse(read_file(file), nullptr, false);
  if (json.is_object() && json.contains("trained") && json["trained"].is_array()) {
    std::set<std::string> stages;
    for (const auto& stage : json["trained"])
      if (stage.is_string()) stages.insert(stage.get<std::string>());
    return stages;
  }
  throw Error(ErrorKind::corrupt,
              fmt::format("`{}` does not list the stages that were trained", file.string()));
}

}  // namespace tandem
