// What a benchmark measured: rows of named figures. One record serves every benchmark; tables, JSON
// documents and comparisons are made from it.
//
// A benchmark runs once and fills a record with one value a figure. Repeated runs are merged, value
// after value, figures found by their row and name; then `settle` fills the ratios.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

enum class Better { higher, lower, neither };  // neither: a fact, not a judgement
const char* to_string(Better better);

struct Figure {
  std::string name;        // "codes_per_second", its name in the JSON document
  std::string unit;        // "codes/s"; "s", "bytes", "share" and "FLOP/s" are scaled in tables
  std::string title = "";  // before the unit in a table's heading
  Better better = Better::higher;
  std::vector<double> values = {};  // one a repetition; none: not measured
  // A ratio of two figures of the same row, by their means.
  std::string numerator = "", denominator = "";

  double mean() const;       // of at least one value
  double deviation() const;  // of the sample; 0 for one value
};

// Values of the parameters that were given several: {"--num-workers", "2"}, {"batch_size", "16"}.
using Parameters = std::vector<std::pair<std::string, std::string>>;

struct BenchRow {
  std::vector<std::string> path = {};  // in the JSON document: {"stages", "mel"}; empty: at its top
  std::string table = "";  // rows of one table; the heading of its first column. Empty: in no table
  std::string label = "";  // in that column
  std::vector<Figure> figures = {};
  Parameters parameters = {};

  const Figure* find(const std::string& name) const;
};

struct BenchRecord {
  std::vector<BenchRow> rows;
  // Names at the top of the JSON document, such as the device and the peer's name.
  std::vector<std::pair<std::string, std::string>> facts;
  std::string note;          // a line below the tables
  std::string peer_details;  // the peer's own JSON document, or empty
};

// Our figure, the peer's and how many times faster we are. `theirs` is null when no peer ran.
std::vector<Figure> against_peer(Figure ours, const std::string& peer_name,
                                 const nlohmann::json& theirs);

// Appends the values of `next`, a record of the same benchmark with the same parameters. Rows and
// figures that are new are added.
void merge(BenchRecord& record, const BenchRecord& next);
// Marks all rows with the parameters they were measured with.
void mark(BenchRecord& record, const Parameters& parameters);
// Adds the rows of another combination of parameters.
void append(BenchRecord& record, BenchRecord other);
// Ratios from means.
void settle(BenchRecord& record);

}  // namespace tandem
