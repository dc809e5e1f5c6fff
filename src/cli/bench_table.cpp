#include "cli/bench_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "util/text.h"

namespace tandem {
namespace {

// Tables show what people say: milliseconds, GiB, per cent.
struct Shown {
  std::string unit;
  double scale;
};

Shown shown(const std::string& unit) {
  if (unit == "s") return {"ms", 1e3};
  if (unit == "bytes") return {"GiB", 1.0 / (1 << 30)};
  if (unit == "share") return {"%", 100};
  if (unit == "FLOP/s") return {"TFLOP/s", 1e-12};
  return {unit, 1};
}

std::string heading_of(const Figure& figure) {
  const std::string unit = shown(figure.unit).unit;
  return figure.title + (figure.title.empty() || unit.empty() ? "" : " ") + unit;
}

std::string cell(const Figure* figure) {
  if (!figure || figure->values.empty()) return "";
  const double scale = shown(figure->unit).scale;
  const std::string mean = short_number(scale * figure->mean());
  if (figure->values.size() < 2) return mean;
  return mean + " ± " + short_number(scale * figure->deviation());
}

std::vector<const Figure*> columns_of(const std::vector<const BenchRow*>& rows) {
  std::vector<const Figure*> columns;
  for (const BenchRow* row : rows) {
    for (const Figure& figure : row->figures) {
      const bool known = std::ranges::any_of(
          columns, [&](const Figure* column) { return column->name == figure.name; });
      if (!known && !figure.values.empty()) columns.push_back(&figure);
    }
  }
  return columns;
}

std::string line(const std::vector<std::string>& cells) {
  return "| " + join(cells, " | ") + " |\n";
}

std::string table_text(const std::vector<const BenchRow*>& rows) {
  const std::vector<const Figure*> columns = columns_of(rows);
  if (columns.empty()) return "";
  std::vector<std::string> cells;
  for (const auto& [name, value] : rows.front()->parameters) cells.push_back(name);
  cells.push_back(rows.front()->table);
  for (const Figure* column : columns) cells.push_back(heading_of(*column));
  std::string text = line(cells) + "|";
  for (size_t i = 0; i < cells.size(); ++i) text += "---|";
  text += "\n";
  for (const BenchRow* row : rows) {
    cells.clear();
    for (const auto& [name, value] : row->parameters) cells.push_back(value);
    cells.push_back(row->label);
    for (const Figure* column : columns) cells.push_back(cell(row->find(column->name)));
    text += line(cells);
  }
  return text;
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

nlohmann::ordered_json number(double value) {
  const bool whole = std::abs(value) < 1e15 && value == std::floor(value);
  return whole ? nlohmann::ordered_json(static_cast<int64_t>(value))
               : nlohmann::ordered_json(value);
}

void place(nlohmann::ordered_json& document, const BenchRow& row) {
  nlohmann::ordered_json* spot = &document;
  for (const std::string& name : row.path) spot = &(*spot)[name];
  for (const Figure& figure : row.figures) {
    if (spot->contains(figure.name)) continue;
    (*spot)[figure.name] = figure.values.empty() ? nlohmann::ordered_json() : number(figure.mean());
  }
}

nlohmann::ordered_json entry_of(const BenchRow& row, const Figure& figure) {
  nlohmann::ordered_json parameters = nlohmann::ordered_json::object();
  for (const auto& [name, value] : row.parameters) parameters[name] = value;
  return {{"parameters", parameters}, {"row", row.path},
          {"label", row.label},       {"figure", figure.name},
          {"unit", figure.unit},      {"better", to_string(figure.better)},
          {"mean", figure.mean()},    {"deviation", figure.deviation()},
          {"values", figure.values}};
}

}  // namespace

std::string short_number(double value) {
  const double size = std::abs(value);
  if (size >= 100 || value == std::floor(value)) return fmt::format("{:.0f}", value);
  if (size >= 10) return fmt::format("{:.1f}", value);
  if (size >= 1) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3g}", value);
}

std::string row_name(const Parameters& parameters, const std::string& label) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : parameters) parts.push_back(name + "=" + value);
  if (!label.empty()) parts.push_back(label);
  return join(parts, ", ");
}

std::string bench_markdown(const BenchHeading& heading, const BenchRecord& record) {
  std::vector<std::string> tables;
  for (const BenchRow& row : record.rows) {
    if (!row.table.empty() && std::ranges::find(tables, row.table) == tables.end())
      tables.push_back(row.table);
  }
  std::string text;
  for (const std::string& table : tables) {
    std::vector<const BenchRow*> rows;
    for (const BenchRow& row : record.rows)
      if (row.table == table) rows.push_back(&row);
    const std::string part = table_text(rows);
    if (!text.empty() && !part.empty()) text += "\n";
    text += part;
  }
  if (!record.note.empty()) text += "\n" + record.note + "\n";
  const BenchOrigin& origin = heading.origin;
  text += fmt::format("\n`{}`; {}; {}{}\n", heading.command, origin.machine(),
                      origin.date.substr(0, 10),
                      origin.commit.empty() ? "" : ", commit " + origin.commit);
  return text;
}

std::string bench_csv(const BenchHeading& heading, const BenchRecord& record) {
  Parameters names;
  if (!record.rows.empty()) names = record.rows.front().parameters;
  std::string text = "bench,";
  for (const auto& [name, value] : names) text += quoted(name) + ",";
  text += "row,label,figure,unit,better,mean,deviation,repetitions\n";
  for (const BenchRow& row : record.rows) {
    for (const Figure& figure : row.figures) {
      if (figure.values.empty()) continue;
      text += heading.bench + ",";
      for (const auto& [name, value] : row.parameters) text += quoted(value) + ",";
      text += fmt::format("{},{},{},{},{},{},{},{}\n", quoted(join(row.path, "/")),
                          quoted(row.label), figure.name, figure.unit, to_string(figure.better),
                          figure.mean(), figure.deviation(), figure.values.size());
    }
  }
  return text;
}

nlohmann::ordered_json bench_document(const BenchHeading& heading, const BenchRecord& record) {
  nlohmann::ordered_json document = nlohmann::ordered_json::object();
  for (const BenchRow& row : record.rows)
    if (row.path.empty()) place(document, row);
  for (const auto& [name, value] : record.facts)
    if (!document.contains(name)) document[name] = value;
  for (const BenchRow& row : record.rows)
    if (!row.path.empty()) place(document, row);
  if (!record.peer_details.empty())
    document["peer_details"] = nlohmann::ordered_json::parse(record.peer_details);
  const BenchOrigin& origin = heading.origin;
  document["bench"] = heading.bench;
  document["command"] = heading.command;
  document["date"] = origin.date;
  document["version"] = heading.version;
  document["commit"] =
      origin.commit.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(origin.commit);
  document["machine"] = {{"name", origin.machine()},
                         {"cpu", origin.cpu},
                         {"cores", origin.cores},
                         {"memory_bytes", origin.memory},
                         {"devices", origin.devices}};
  document["warm_up"] = heading.warm_up;
  document["repeat"] = heading.repeat;
  document["figures"] = nlohmann::ordered_json::array();
  for (const BenchRow& row : record.rows) {
    for (const Figure& figure : row.figures)
      if (!figure.values.empty()) document["figures"].push_back(entry_of(row, figure));
  }
  return document;
}

}  // namespace tandem
