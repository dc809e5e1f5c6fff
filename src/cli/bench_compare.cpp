#include "cli/bench_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/bench_table.h"
#include "tandem/error.h"
#include "util/atomic_file.h"

namespace tandem {
namespace {

[[noreturn]] void refuse_old(const std::string& file, const std::string& why) {
  throw Error(ErrorKind::corrupt,
              fmt::format("`{}` is no document of `tandem bench`: {}", file, why))
      .hint("write one with `tandem bench … --out old.json`");
}

OldBench::Entry read_entry(const std::string& file, const nlohmann::ordered_json& json) {
  if (!json.is_object() || !json.contains("mean") || !json["mean"].is_number() ||
      !json.contains("figure") || !json["figure"].is_string())
    refuse_old(file, "an entry of `figures` has no `figure` or no `mean`");
  OldBench::Entry entry{.figure = json["figure"], .mean = json["mean"]};
  if (json.contains("label") && json["label"].is_string()) entry.label = json["label"];
  if (json.contains("row") && json["row"].is_array()) {
    for (const auto& part : json["row"])
      if (part.is_string()) entry.row.push_back(part);
  }
  if (json.contains("parameters") && json["parameters"].is_object()) {
    for (const auto& [name, value] : json["parameters"].items())
      if (value.is_string()) entry.parameters.emplace_back(name, value);
  }
  return entry;
}

bool same_row(const OldBench::Entry& entry, const BenchRow& row) {
  return entry.row == row.path && entry.label == row.label && entry.parameters == row.parameters;
}

std::string signed_percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

}  // namespace

OldBench read_old_bench(const std::string& file) {
  const auto json = nlohmann::ordered_json::parse(read_file(file), nullptr, false);
  if (!json.is_object()) refuse_old(file, "it is not a JSON object");
  const auto text = [&](const char* name) {
    return json.contains(name) && json[name].is_string() ? json[name].get<std::string>()
                                                         : std::string();
  };
  OldBench old{
      .file = file, .bench = text("bench"), .date = text("date"), .commit = text("commit")};
  if (old.bench.empty()) refuse_old(file, "it has no `bench`");
  if (!json.contains("figures") || !json["figures"].is_array())
    refuse_old(file, "it has no list `figures`");
  if (json.contains("machine") && json["machine"].is_object())
    old.machine = json["machine"].value("name", nlohmann::ordered_json()).is_string()
                      ? json["machine"]["name"].get<std::string>()
                      : "";
  for (const auto& entry : json["figures"]) old.entries.push_back(read_entry(file, entry));
  return old;
}

std::vector<Change> BenchComparison::worse() const {
  std::vector<Change> found;
  std::ranges::copy_if(changes, std::back_inserter(found), &Change::worse);
  return found;
}

void refuse_other_bench(const OldBench& old, const std::string& bench) {
  if (old.bench == bench) return;
  throw Error(ErrorKind::usage, fmt::format("`{}` holds figures of `tandem bench {}`, not of `{}`",
                                            old.file, old.bench, bench));
}

BenchComparison compare_bench(const OldBench& old, const std::string& bench,
                              const BenchRecord& record, double tolerance) {
  refuse_other_bench(old, bench);
  BenchComparison comparison;
  for (const OldBench::Entry& entry : old.entries) {
    const auto row = std::ranges::find_if(record.rows, [&](const BenchRow& candidate) {
      return same_row(entry, candidate) && candidate.find(entry.figure);
    });
    const Figure* figure = row == record.rows.end() ? nullptr : row->find(entry.figure);
    if (!figure || figure->values.empty()) {
      const std::string name = row_name(entry.parameters, entry.label);
      if (!name.empty() &&
          std::ranges::find(comparison.missing, name) == comparison.missing.end() &&
          row == record.rows.end())
        comparison.missing.push_back(name);
      continue;
    }
    if (figure->better == Better::neither || entry.mean == 0) continue;
    Change change{.row = row_name(row->parameters, row->label),
                  .figure = figure->name,
                  .unit = figure->unit,
                  .before = entry.mean,
                  .now = figure->mean()};
    change.worse =
        figure->better == Better::higher ? change.share() < -tolerance : change.share() > tolerance;
    comparison.changes.push_back(std::move(change));
  }
  if (comparison.changes.empty()) {
    throw Error(ErrorKind::usage,
                fmt::format("`{}` and this run have no figure in common to compare", old.file))
        .hint("measure the same rows: the old command stands in its `command`");
  }
  return comparison;
}

std::string comparison_markdown(const OldBench& old, const BenchComparison& comparison) {
  std::string text = fmt::format(
      "\nAgainst `{}` ({}{}):\n| row | figure | before | now | change | |\n"
      "|---|---|---|---|---|---|\n",
      old.file, old.date, old.commit.empty() ? "" : ", commit " + old.commit);
  for (const Change& change : comparison.changes)
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", change.row, change.figure,
                        short_number(change.before), short_number(change.now),
                        signed_percent(change.share()), change.worse ? "worse" : "");
  for (const std::string& row : comparison.missing)
    text += fmt::format("not measured now: {}\n", row);
  return text;
}

nlohmann::ordered_json comparison_document(const OldBench& old, const BenchComparison& comparison,
                                           double tolerance) {
  nlohmann::ordered_json document{{"file", old.file},
                                  {"date", old.date},
                                  {"commit", old.commit},
                                  {"machine", old.machine},
                                  {"tolerance", tolerance},
                                  {"worse", comparison.worse().size()},
                                  {"changes", nlohmann::ordered_json::array()},
                                  {"missing", comparison.missing}};
  for (const Change& change : comparison.changes)
    document["changes"].push_back({{"row", change.row},
                                   {"figure", change.figure},
                                   {"unit", change.unit},
                                   {"before", change.before},
                                   {"now", change.now},
                                   {"change", change.share()},
                                   {"worse", change.worse}});
  return document;
}

std::vector<std::string> complaints(const OldBench& old, const BenchComparison& comparison,
                                    double tolerance) {
  const std::vector<Change> worse = comparison.worse();
  if (worse.empty()) return {};
  std::vector<std::string> lines{fmt::format("❌ {} figure{} more than {:.4g} % slower than in {}",
                                             worse.size(), worse.size() == 1 ? " is" : "s are",
                                             100 * tolerance, old.file)};
  for (const Change& change : worse)
    lines.push_back(fmt::format("   {}: {} {} -> {} ({})", change.row, change.figure,
                                short_number(change.before), short_number(change.now),
                                signed_percent(change.share())));
  return lines;
}

}  // namespace tandem
