#include "data/corpus/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

constexpr double width = 640, height = 220, left = 46, bottom = 32, top = 8, right = 12;

struct Range {
  double low = 0, high = 1;
  double place(double value, double from, double to) const {
    return from + (value - low) / (high - low) * (to - from);
  }
};

Range range_of(double low, double high) {
  if (!(high > low)) high = low + 1;
  return {low, high};
}

// A round step that gives about five marks.
double step_of(const Range& range) {
  const double rough = (range.high - range.low) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (power * factor >= rough) return power * factor;
  }
  return power * 10;
}

std::vector<double> marks(const Range& range) {
  std::vector<double> out;
  const double step = step_of(range);
  for (double at = std::ceil(range.low / step) * step; at <= range.high + step / 1000; at += step) {
    out.push_back(std::fabs(at) < step / 1000 ? 0 : at);
  }
  return out;
}

std::string axes(const Range& x, const Range& y, const std::string& x_unit,
                 const std::string& y_unit) {
  std::string out;
  for (const double at : marks(x)) {
    const double place = x.place(at, left, width - right);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>", place,
                       height - bottom + 14, at);
  }
  for (const double at : marks(y)) {
    const double place = y.place(at, height - bottom, top);
    out += fmt::format(
        "<line class=\"axis\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>",
        left, width - right, place, place, left - 6, place + 4, at);
  }
  return out + fmt::format(
                   "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>"
                   "<text x=\"4\" y=\"{}\">{}</text>",
                   width - right, height - 4, html_escape(x_unit), height - 4, html_escape(y_unit));
}

std::string svg(double tall, const std::string& inside) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\">{}</svg>\n", width, tall, inside);
}

}  // namespace

std::string html_escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string url_escape(const std::string& path) {
  std::string out;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '/';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string svg_histogram(const std::vector<double>& values, const std::string& unit) {
  if (values.empty()) return "<p>nothing to show</p>\n";
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const Range x = range_of(*least, *most);
  constexpr size_t bins = 40;
  std::vector<int64_t> counts(bins);
  for (const double value : values) {
    const double place = x.place(value, 0, bins);
    ++counts[static_cast<size_t>(std::clamp(place, 0.0, bins - 1.0))];
  }
  const Range y = range_of(0, static_cast<double>(*std::max_element(counts.begin(), counts.end())));
  std::string out = axes(x, y, unit, "clips");
  const double wide = (width - left - right) / bins;
  for (size_t bin = 0; bin < bins; ++bin) {
    const double tall = y.place(static_cast<double>(counts[bin]), 0, height - bottom - top);
    out += fmt::format(
        "<rect class=\"bar\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.1f}\"><title>{} "
        "clips</title></rect>",
        left + wide * static_cast<double>(bin), height - bottom - tall, wide - 1, tall,
        counts[bin]);
  }
  return svg(height, out);
}

std::string svg_scatter(const std::vector<Dot>& dots, const std::string& x_unit,
                        const std::string& y_unit) {
  if (dots.empty()) return "<p>nothing to show</p>\n";
  double x_most = 0, y_most = 0;
  for (const Dot& dot : dots) {
    x_most = std::max(x_most, dot.x);
    y_most = std::max(y_most, dot.y);
  }
  const Range x = range_of(0, x_most), y = range_of(0, y_most);
  std::string out = axes(x, y, x_unit, y_unit);
  // A page with a million dots opens slowly; those that matter are all there.
  constexpr size_t most = 3000;
  const size_t step = dots.size() / most + 1;
  for (size_t i = 0; i < dots.size(); ++i) {
    if (!dots[i].odd && i % step != 0) continue;
    out += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>",
                       dots[i].odd ? "odd" : "dot", x.place(dots[i].x, left, width - right),
                       y.place(dots[i].y, height - bottom, top), dots[i].odd ? 4 : 2);
  }
  return svg(height, out);
}

std::string svg_bars(const std::vector<std::pair<std::string, double>>& bars,
                     const std::string& unit) {
  if (bars.empty()) return "<p>nothing to show</p>\n";
  constexpr double row = 20, names = 180;
  double most = 1e-9;
  for (const auto& [name, value] : bars) most = std::max(most, value);
  std::string out;
  for (size_t i = 0; i < bars.size(); ++i) {
    const double y = row * static_cast<double>(i);
    const double wide = bars[i].second / most * (width - names - 90);
    out += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>"
        "<rect class=\"bar\" x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>"
        "<text x=\"{:.1f}\" y=\"{}\">{:.2f} {}</text>",
        names - 8, y + 14, html_escape(bars[i].first), names, y + 3, wide, row - 6,
        names + wide + 6, y + 14, bars[i].second, html_escape(unit));
  }
  return svg(row * static_cast<double>(bars.size()) + 4, out);
}

}  // namespace tandem
