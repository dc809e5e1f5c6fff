#include "observe/metrics_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "observe/run_events.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

// What was not measured is left out.
void add_measured(Json& json, const StepReport& report) {
  if (report.audio_seconds_per_second > 0)
    json["audio_seconds_per_second"] = report.audio_seconds_per_second;
  if (!report.skipped.empty()) json["skipped"] = report.skipped;
  if (report.memory_used > 0) json["memory_used"] = report.memory_used;
  if (report.gpu_utilisation >= 0) json["gpu_utilisation"] = report.gpu_utilisation;
  if (report.captures > 0) json["captures"] = report.captures;
}

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& path, int64_t first_step) : path_(path) {
  if (std::filesystem::exists(path)) {
    std::string kept;
    for (const std::string& line : split(read_file(path), '\n')) {
      const auto json = nlohmann::json::parse(line, nullptr, false);
      const bool whole = json.is_object() && json.contains("step") && json["step"].is_number();
      if (!whole || json["step"].get<int64_t>() > first_step) continue;
      kept += line + "\n";
      if (json.value("split", "") == "val") last_validation_ = json["step"].get<int64_t>();
    }
    write_file_atomically(path, kept);
  }
  file_.open(path, std::ios::app);
  if (!file_) throw Error(ErrorKind::io, fmt::format("cannot write `{}`", path.string()));
}

void MetricsFile::add(const StepReport& report) {
  // What failed behind a validation was made up for, and with it the validation.
  if (report.validation && std::exchange(last_validation_, report.step) == report.step) return;
  Json json = {
      {"step", report.step}, {"split", report.validation ? "val" : "train"}, {"loss", report.loss}};
  if (!report.validation) {
    json["gradient_norm"] = report.gradient_norm;
    json["learning_rate"] = report.learning_rate;
    json["tokens_per_second"] = report.tokens_per_second;
    json["wait_share"] = report.wait_share;
    add_measured(json, report);
  }
  if (report.best) json["best"] = true;
  for (const auto& [name, value] : report.terms) json["terms"][name] = value;
  json["time"] = seconds_since_1970();
  file_ << json.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n" << std::flush;
  if (!file_) {
    throw Error(ErrorKind::io, fmt::format("cannot write `{}`", path_.string()))
        .hint("is the disk full?");
  }
}

}  // namespace tandem
