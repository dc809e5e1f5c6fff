#include "observe/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

std::mutex g_mutex;
std::string g_line;  // what stands on the terminal now

void clear_or_redraw(bool clear) {
  std::lock_guard lock(g_mutex);
  if (g_line.empty()) return;
  std::fputs(clear ? "\r\033[K" : g_line.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace

Progress::Progress(int64_t first, int64_t total, int64_t every, std::string item)
    : first_(first),
      total_(total),
      every_(std::max<int64_t>(1, every)),
      item_(std::move(item)),
      start_(std::chrono::steady_clock::now()) {
  if (terminal_wants_progress()) set_progress_hook(&clear_or_redraw);
}

Progress::~Progress() {
  set_progress_hook(nullptr);
  std::lock_guard lock(g_mutex);
  if (!g_line.empty()) std::fputs("\n", stderr);
  g_line.clear();
}

std::string Progress::bar(int64_t done, int64_t total, int width) {
  const int64_t filled = total > 0 ? std::clamp<int64_t>(done * width / total, 0, width) : 0;
  const int digits = static_cast<int>(std::to_string(total).size());
  return fmt::format("[{:#<{}}{:-<{}}] {:>{}}/{}", "", filled, "", width - filled, done, digits,
                     total);
}

double Progress::seconds_left(int64_t done) const {
  const double passed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const auto finished = static_cast<double>(std::max<int64_t>(1, done - first_));
  return passed / finished * static_cast<double>(total_ - done);
}

void Progress::update(int64_t done, const std::string& figures) {
  const bool last = done >= total_;
  const std::string left = last ? "" : "  left " + format_seconds(seconds_left(done));
  if (terminal_wants_progress()) {
    std::lock_guard lock(g_mutex);
    g_line = fmt::format("\r\033[K{}  {}{}", bar(done, total_, 24), figures, left);
    std::fputs(g_line.c_str(), stderr);
    std::fflush(stderr);
  } else if (last || done == first_ + 1 || done % every_ == 0) {
    log_info("{} {}/{}  {}{}", item_, done, total_, figures, left);
  }
}

}  // namespace tandem
