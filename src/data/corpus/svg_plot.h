// Small plots as SVG text that takes its colours from the page: classes `bar`, `dot`, `odd`,
// `axis`.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tandem {

// Text made safe inside HTML and its attributes.
std::string html_escape(const std::string& text);
// A relative path as a link: every byte that is not plain is percent-encoded.
std::string url_escape(const std::string& path);

std::string svg_histogram(const std::vector<double>& values, const std::string& unit);

struct Dot {
  double x, y;
  bool odd;  // marked
};
std::string svg_scatter(const std::vector<Dot>& dots, const std::string& x_unit,
                        const std::string& y_unit);

std::string svg_bars(const std::vector<std::pair<std::string, double>>& bars,
                     const std::string& unit);

}  // namespace tandem
