#include "observe/bench_record.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace tandem {
namespace {

BenchRow* find_row(std::vector<BenchRow>& rows, const BenchRow& wanted) {
  const auto found = std::ranges::find_if(rows, [&](const BenchRow& row) {
    return row.path == wanted.path && row.table == wanted.table && row.label == wanted.label &&
           row.parameters == wanted.parameters;
  });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

const char* to_string(Better better) {
  switch (better) {
    case Better::higher: return "higher";
    case Better::lower: return "lower";
    case Better::neither: break;
  }
  return "neither";
}

double Figure::mean() const {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Figure::deviation() const {
  if (values.size() < 2) return 0;
  const double middle = mean();
  double squares = 0;
  for (const double value : values) squares += (value - middle) * (value - middle);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

const Figure* BenchRow::find(const std::string& name) const {
  const auto found = std::ranges::find(figures, name, &Figure::name);
  return found == figures.end() ? nullptr : &*found;
}

std::vector<Figure> against_peer(Figure ours, const std::string& peer_name,
                                 const nlohmann::json& theirs) {
  Figure peer{.name = peer_name, .unit = ours.unit, .title = "peer", .better = Better::neither};
  if (theirs.is_number()) peer.values = {theirs.get<double>()};
  const bool faster_is_less = ours.better == Better::lower;
  Figure ratio{.name = "ratio",
               .unit = "",
               .title = "ratio",
               .better = Better::neither,
               .numerator = faster_is_less ? peer.name : ours.name,
               .denominator = faster_is_less ? ours.name : peer.name};
  return {std::move(ours), std::move(peer), std::move(ratio)};
}

void merge(BenchRecord& record, const BenchRecord& next) {
  for (const BenchRow& row : next.rows) {
    BenchRow* mine = find_row(record.rows, row);
    if (!mine) {
      record.rows.push_back(row);
      continue;
    }
    for (const Figure& figure : row.figures) {
      const auto found = std::ranges::find(mine->figures, figure.name, &Figure::name);
      if (found == mine->figures.end()) {
        mine->figures.push_back(figure);
      } else {
        found->values.insert(found->values.end(), figure.values.begin(), figure.values.end());
      }
    }
  }
}

void mark(BenchRecord& record, const Parameters& parameters) {
  for (BenchRow& row : record.rows) row.parameters = parameters;
}

void append(BenchRecord& record, BenchRecord other) {
  if (record.rows.empty()) {
    record = std::move(other);
    return;
  }
  std::ranges::move(other.rows, std::back_inserter(record.rows));
}

void settle(BenchRecord& record) {
  for (BenchRow& row : record.rows) {
    for (Figure& figure : row.figures) {
      if (figure.numerator.empty()) continue;
      const Figure* above = row.find(figure.numerator);
      const Figure* below = row.find(figure.denominator);
      figure.values.clear();
      if (above && below && !above->values.empty() && !below->values.empty() && below->mean() != 0)
        figure.values = {above->mean() / below->mean()};
    }
  }
}

}  // namespace tandem
