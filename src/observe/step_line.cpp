#include "observe/step_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "util/text.h"

namespace tandem {
namespace {

struct Figure {
  std::string text;
  int rank = 0;  // the highest is left out first
};

}  // namespace

std::string step_figures(const StepReport& report, const double* validation, size_t columns) {
  std::vector<Figure> figures = {{fmt::format("loss {:.4f}", report.loss), 0}};
  if (!report.skipped.empty()) figures.push_back({"skipped", 1});
  if (validation) figures.push_back({fmt::format("val {:.4f}", *validation), 2});
  figures.push_back({fmt::format("norm {:.2f}", report.gradient_norm), 6});
  figures.push_back({fmt::format("lr {:.1e}", report.learning_rate), 5});
  figures.push_back({fmt::format("{:.0f} tok/s", report.tokens_per_second), 3});
  if (report.audio_seconds_per_second > 0)
    figures.push_back({fmt::format("{:.0f} audio-s/s", report.audio_seconds_per_second), 8});
  figures.push_back({fmt::format("wait {:.1f}%", 100 * report.wait_share), 4});
  if (report.gpu_utilisation >= 0)
    figures.push_back({fmt::format("GPU {:.0f}%", 100 * report.gpu_utilisation), 7});
  if (report.memory_used > 0) figures.push_back({format_bytes(report.memory_used), 9});
  const auto length = [&] {
    size_t sum = 2 * (figures.size() - 1);
    for (const Figure& figure : figures) sum += figure.text.size();
    return sum;
  };
  while (figures.size() > 1 && length() > columns)
    figures.erase(std::ranges::max_element(figures, {}, &Figure::rank));
  std::vector<std::string> texts;
  for (const Figure& figure : figures) texts.push_back(figure.text);
  return join(texts, "  ");
}

size_t terminal_columns() {
  constexpr size_t unlimited = 1000;
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return unlimited;
  return size.ws_col;
}

}  // namespace tandem
