#include "generate/evaluation_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "data/corpus/text_table.h"
#include "generate/captions.h"
#include "tandem/error.h"
#include "util/atomic_file.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

constexpr const char* score_column = "fad_score";

struct Table {
  Row columns;
  std::vector<Row> rows;
};

Table read_csv(const fs::path& path) {
  const TextTable text = load_table(path.string());
  Records records(text, ',');
  Record record;
  Table table;
  if (records.next(record)) table.columns = record.fields;
  while (records.next(record)) {
    record.fields.resize(table.columns.size());
    table.rows.push_back(record.fields);
  }
  return table;
}

// The rows to score: those scored before, else metadata.csv, else the manifest's clips.
Table rows_of(const fs::path& scores, const VerifyReport& report) {
  std::error_code ignored;
  for (const fs::path& path : {scores, report.folder / "metadata.csv"}) {
    if (!fs::exists(path, ignored)) continue;
    Table table = read_csv(path);
    if (std::ranges::count(table.columns, "filename") == 1) return table;
  }
  Table table{.columns = {"id", "text", "filename"}, .rows = {}};
  for (const VerifiedClip& clip : report.clips)
    if (clip.listed) table.rows.push_back({clip.id, clip.text, clip.file});
  return table;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json read_results(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return Json::object();
  const Json before = Json::parse(read_file(path), nullptr, false);
  return before.is_object() ? before : Json::object();
}

}  // namespace

fs::path write_evaluation(const Evaluation& evaluation) {
  const fs::path folder = evaluation.clips.folder / "evaluation_results";
  const fs::path results = folder / "evaluation_results.json";
  const fs::path scores = folder / "per_sample_scores.csv";
  const FadReport& fad = evaluation.fad;
  make_folder(folder);
  Json json = read_results(results);
  json["fad_score"] = number(fad.score);
  json["fad_score_mean"] = number(fad.mean);
  json["fad_score_std"] = number(fad.deviation);
  json["fad_subset_scores"] = fad.subset_scores;
  json["fad_features"] = "encodec";
  json["fad_model"] = evaluation.model.string();
  json["fad_reference"] = evaluation.reference.string();
  json["fad_clips"] = fad.clips;
  json["fad_references"] = fad.references;
  json["fad_per_sample"] = Json::array();
  std::map<std::string, double> score_of;
  for (size_t i = 0; i < fad.clip_scores.size(); ++i) {
    json["fad_per_sample"].push_back(number(fad.clip_scores[i]));
    score_of[evaluation.files[i]] = fad.clip_scores[i];
  }

  Table table = rows_of(scores, evaluation.clips);
  const auto place_of = [&](const char* name) {
    return static_cast<size_t>(std::ranges::find(table.columns, name) - table.columns.begin());
  };
  const size_t file = place_of("filename"), score = place_of(score_column);
  if (score == table.columns.size()) table.columns.emplace_back(score_column);
  std::string text = csv_line(table.columns);
  for (Row& row : table.rows) {
    row.resize(table.columns.size());
    const auto found = score_of.find(row[file]);
    const bool known = found != score_of.end() && std::isfinite(found->second);
    row[score] = known ? fmt::format("{}", found->second) : "";
    text += csv_line(row);
  }
  write_file_atomically(scores, text);
  write_file_atomically(results, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  return results;
}

}  // namespace tandem
