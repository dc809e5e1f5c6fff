// Figures in the text form that Prometheus reads (exposition format 0.0.4): for each metric a line
// of help, a line with its type, and a line for each of its samples.
//
//   # HELP tandem_device_memory_bytes Bytes of tensors on the device.
//   # TYPE tandem_device_memory_bytes gauge
//   tandem_device_memory_bytes{device="/GPU:0"} 1024
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

using PrometheusLabels = std::vector<std::pair<std::string, std::string>>;

struct PrometheusSample {
  PrometheusLabels labels = {};
  double value = 0;
};

struct PrometheusMetric {
  std::string name;  // with its unit; a counter's ends in _total
  enum Type { gauge, counter } type = gauge;
  std::string help;
  std::vector<PrometheusSample> samples;  // with different labels
};

// A metric without samples is left out. Throws Error(internal) for a name or label that Prometheus
// would not take, and for a metric that is there twice.
std::string prometheus_text(const std::vector<PrometheusMetric>& metrics);

// What stands between the quotes of a label: backslash, quote and line feed escaped, and what is no
// UTF-8 replaced by U+FFFD.
std::string prometheus_label_value(std::string_view text);
// Of a help line: backslash and line feed.
std::string prometheus_help(std::string_view text);
// "0.5", "NaN", "+Inf", "-Inf"; read back it is the same number.
std::string prometheus_number(double value);

}  // namespace tandem
