#include "observe/metrics_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {

MetricsFile::MetricsFile(const std::filesystem::path& path, int64_t first_step) : path_(path) {
  if (std::filesystem::exists(path)) {
    std::string kept;
    for (const std::string& line : split(read_file(path), '\n')) {
      const auto json = nlohmann::json::parse(line, nullptr, false);
      const bool whole = json.is_object() && json.contains("step") && json["step"].is_number();
      if (whole && json["step"].get<int64_t>() <= first_step) kept += line + "\n";
    }
    write_file_atomically(path, kept);
  }
  file_.open(path, std::ios::app);
  if (!file_) throw Error(ErrorKind::io, fmt::format("cannot write `{}`", path.string()));
}

void MetricsFile::add(const StepReport& report) {
  nlohmann::ordered_json json = {
      {"step", report.step}, {"split", report.validation ? "val" : "train"}, {"loss", report.loss}};
  if (!report.validation) {
    json["gradient_norm"] = report.gradient_norm;
    json["learning_rate"] = report.learning_rate;
    json["tokens_per_second"] = report.tokens_per_second;
    json["wait_share"] = report.wait_share;
  }
  file_ << json.dump() << "\n" << std::flush;
  if (!file_) {
    throw Error(ErrorKind::io, fmt::format("cannot write `{}`", path_.string()))
        .hint("is the disk full?");
  }
}

}  // namespace tandem
