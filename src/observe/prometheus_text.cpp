#include "observe/prometheus_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>

#include "tandem/error.h"

namespace tandem {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Metrics may have colons too, but those are for rules that users write.
void check_name(const std::string& name, const char* what) {
  const bool good = !name.empty() && is_letter(name.front()) &&
                    std::ranges::all_of(name, [](char c) { return is_letter(c) || is_digit(c); });
  if (!good || name.starts_with("__"))
    throw Error(ErrorKind::internal,
                fmt::format("`{}` is no name of a {} for Prometheus", name, what));
}

// Bytes of the UTF-8 character that begins at `place`; 0: there is none.
size_t character_size(std::string_view text, size_t place) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[place + i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || place + size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const bool too_long = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) >= 0xA0;
  return too_long || surrogate || (first == 0xF4 && byte(1) >= 0x90) ? 0 : size;
}

std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t size = character_size(text, i);
    const char c = text[i];
    if (size == 0) {
      out += "\xEF\xBF\xBD";
    } else if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += text.substr(i, size);
    }
    i += std::max<size_t>(1, size);
  }
  return out;
}

std::string labels_text(const PrometheusLabels& labels) {
  if (labels.empty()) return "";
  std::string text = "{";
  std::set<std::string> seen;
  for (const auto& [name, value] : labels) {
    check_name(name, "label");
    if (!seen.insert(name).second)
      throw Error(ErrorKind::internal, fmt::format("the label `{}` is there twice", name));
    if (text.size() > 1) text += ',';
    text += fmt::format("{}=\"{}\"", name, prometheus_label_value(value));
  }
  return text + "}";
}

}  // namespace

std::string prometheus_label_value(std::string_view text) { return escaped(text, true); }
std::string prometheus_help(std::string_view text) { return escaped(text, false); }

std::string prometheus_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);  // the shortest that reads back the same
}

std::string prometheus_text(const std::vector<PrometheusMetric>& metrics) {
  std::string text;
  std::set<std::string> names;
  for (const PrometheusMetric& metric : metrics) {
    if (metric.samples.empty()) continue;
    check_name(metric.name, "metric");
    if (!names.insert(metric.name).second)
      throw Error(ErrorKind::internal, fmt::format("the metric `{}` is there twice", metric.name));
    text +=
        fmt::format("# HELP {} {}\n# TYPE {} {}\n", metric.name, prometheus_help(metric.help),
                    metric.name, metric.type == PrometheusMetric::counter ? "counter" : "gauge");
    std::set<std::string> series;
    for (const PrometheusSample& sample : metric.samples) {
      const std::string labels = labels_text(sample.labels);
      if (!series.insert(labels).second)
        throw Error(ErrorKind::internal, fmt::format("`{}{}` has two values", metric.name, labels));
      text += fmt::format("{}{} {}\n", metric.name, labels, prometheus_number(sample.value));
    }
  }
  return text;
}

}  // namespace tandem
