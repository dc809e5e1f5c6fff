#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "device/logical_device.h"
#include "observe/profile_report.h"
#include "observe/profile_summary.h"
#include "observe/report_html.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr double width = 1200, left = 170, right = 12, row_height = 22, row_gap = 6,
                 memory_height = 90;
constexpr double thinnest = 0.3;     // points; what is thinner is drawn as part of its neighbours
constexpr size_t most_boxes = 4000;  // of a row

struct Box {
  TimeSpan span;
  std::string name;
  int colour = 0;
};
struct Row {
  std::string name;
  std::vector<Box> boxes;
};

// Boxes too thin to be seen are joined while they touch, so that a page stays a page.
std::vector<Box> thinned_boxes(std::vector<Box> boxes, double scale) {
  std::ranges::sort(boxes, {}, [](const Box& box) { return box.span.start; });
  std::vector<Box> out;
  for (Box& box : boxes) {
    const bool thin = box.span.seconds() * scale < thinnest;
    if (thin && !out.empty()) {
      Box& last = out.back();
      if (box.span.start <= last.span.end) {  // inside one that is shown, or touching
        last.span.end = std::max(last.span.end, box.span.end);
        continue;
      }
      if ((box.span.start - last.span.end) * scale < thinnest &&
          last.span.seconds() * scale < 4 * thinnest) {
        last.span.end = box.span.end;
        last.name = "short operations";
        continue;
      }
    }
    out.push_back(std::move(box));
  }
  if (out.size() > most_boxes) out.resize(most_boxes);
  return out;
}

class StepTimeline {
 public:
  StepTimeline(const Profile& profile, size_t steps) : profile_(profile) {
    shown_ = {1e300, -1e300};
    for (const ProfiledReplica& replica : profile.replicas) {
      const auto& all = replica.traced.empty() ? replica.timed : replica.traced;
      const size_t first = all.size() > steps ? all.size() - steps : 0;
      for (size_t i = first; i < all.size(); ++i) {
        shown_.start = std::min({shown_.start, all[i].device.start, all[i].host.start});
        shown_.end = std::max({shown_.end, all[i].device.end, all[i].host.end});
      }
    }
    if (shown_.end <= shown_.start) return;
    scale_ = (width - left - right) / shown_.seconds();
    for (size_t rank = 0; rank < profile.replicas.size(); ++rank) add_replica(rank);
    add_streams();
    add_feed();
  }

  std::string draw() const {
    if (rows_.empty()) return "";
    std::string svg;
    double y = 4;
    for (const Row& row : rows_) {
      svg += fmt::format("<text x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                         left - 8, y + row_height - 7, html_escaped(row.name));
      for (const Box& box : thinned_boxes(row.boxes, scale_)) svg += draw_box(box, y);
      y += row_height + row_gap;
    }
    for (const ProfiledReplica& replica : profile_.replicas) {
      svg += draw_memory(replica, y);
      y += memory_height + row_gap;
    }
    svg += draw_axis(y);
    return fmt::format(
        "<div class=\"wide\"><svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"Timeline "
        "of the last steps\" style=\"display:block;width:100%;min-width:900px;font-size:11px;fill:"
        "var(--quiet)\">\n{}</svg></div>\n",
        width, y + 22, svg);
  }

 private:
  double x_of(double seconds) const { return left + (seconds - shown_.start) * scale_; }
  bool visible(const TimeSpan& span) const {
    return span.end > shown_.start && span.start < shown_.end;
  }
  static void add(Row& row, const TimeSpan& span, std::string name, int colour) {
    row.boxes.push_back({span, std::move(name), colour});
  }

  void add_replica(size_t rank) {
    const ProfiledReplica& replica = profile_.replicas[rank];
    const bool several = profile_.replicas.size() > 1;
    const std::string who = several ? replica.device->name() + " " : "";
    Row device{who + "device", {}}, host{who + "host", {}};
    for (const auto* steps : {&replica.timed, &replica.traced})
      for (const RecordedStep& step : *steps)
        for (const RecordedPart& part : step.parts) {
          const std::string name =
              fmt::format("{} {}: {}", step_word(profile_), step.step, part_name(profile_, part));
          const int colour = part.kind->colour;
          if (visible(part.device)) add(device, part.device, name, colour);
          if (visible(part.host)) add(host, part.host, name, colour);
        }
    rows_.push_back(std::move(device));
    // Off a GPU both are the same.
    if (replica.device->kind() == DeviceKind::cuda) rows_.push_back(std::move(host));
    Row operations{who + "operations", {}};
    const OperationRecord& record = profile_.operations;
    for (const TracedOperation& operation : record.operations)
      if (belongs_to(profile_, operation, rank)) add_operation(operations, operation);
    if (!operations.boxes.empty()) rows_.push_back(std::move(operations));
  }

  // Leaves only: what calls others would hide them.
  void add_operation(Row& row, const TracedOperation& operation) {
    const TimeSpan span{operation.start, operation.end};
    if (!visible(span) || operation.self < 0.9 * span.seconds()) return;
    add(row, span, profile_.operations.names[operation.name], static_cast<int>(operation.name));
  }

  void add_streams() {
    std::map<std::pair<int, int64_t>, Row> streams;
    for (const TracedKernel& kernel : profile_.kernels.kernels) {
      const TimeSpan span{kernel.start, kernel.end};
      if (!visible(span)) continue;
      Row& row = streams[{kernel.cuda_device, kernel.stream}];
      row.name = fmt::format("GPU {} stream {}", kernel.cuda_device, kernel.stream);
      add(row, span, short_kernel_name(kernel.name), kernel.copies ? 1 : 0);
    }
    for (auto& [place, row] : streams) rows_.push_back(std::move(row));
  }

  void add_feed() {
    std::map<uint32_t, Row> threads;
    const OperationRecord& record = profile_.operations;
    for (const TracedOperation& operation : record.operations) {
      if (is_of_a_step(operation)) continue;
      Row& row = threads[operation.thread];
      row.name = record.threads[operation.thread];
      add_operation(row, operation);
    }
    for (auto& [thread, row] : threads)
      if (!row.boxes.empty()) rows_.push_back(std::move(row));
  }

  bool is_of_a_step(const TracedOperation& operation) const {
    for (size_t rank = 0; rank < profile_.replicas.size(); ++rank)
      if (belongs_to(profile_, operation, rank)) return true;
    return false;
  }

  std::string draw_box(const Box& box, double y) const {
    const double x = std::max(left, x_of(box.span.start));
    const double end = std::min(width - right, x_of(box.span.end));
    const double wide = std::max(thinnest, end - x);
    std::string svg = fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" "
        "style=\"fill:var(--c{})\"><title>{} · {:.3f} ms</title></rect>\n",
        x, y, wide, row_height, box.colour % 8, html_escaped(box.name), 1e3 * box.span.seconds());
    const std::string words =
        box.name.substr(box.name.find(": ") == std::string::npos ? 0 : box.name.find(": ") + 2);
    if (wide > 6.5 * static_cast<double>(words.size()) + 6)
      svg += fmt::format(
          "<text x=\"{:.1f}\" y=\"{:.1f}\" style=\"fill:#fff;pointer-events:none\">{}</text>\n",
          x + 4, y + row_height - 7, html_escaped(words));
    return svg;
  }

  std::string draw_memory(const ProfiledReplica& replica, double y) const {
    std::vector<std::pair<double, uint64_t>> readings;
    for (const auto* steps : {&replica.timed, &replica.traced})
      for (const RecordedStep& step : *steps) {
        readings.emplace_back(step.host.start, step.used);
        for (const RecordedPart& part : step.parts) readings.emplace_back(part.host.end, part.used);
      }
    for (const TracedOperation& operation : profile_.operations.operations)
      if (operation.device == replica.device) readings.emplace_back(operation.end, operation.used);
    std::erase_if(readings, [&](const auto& reading) {
      return reading.first < shown_.start || reading.first > shown_.end;
    });
    std::ranges::sort(readings);
    uint64_t most = 1;
    for (const auto& [time, used] : readings) most = std::max(most, used);
    const auto y_of = [&](uint64_t used) {
      return y + memory_height * (1 - static_cast<double>(used) / static_cast<double>(most));
    };
    std::string path;
    double last_x = -1;
    for (const auto& [time, used] : readings) {
      const double x = x_of(time);
      if (x - last_x < thinnest && !path.empty()) continue;
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y_of(used));
      last_x = x;
    }
    return fmt::format(
        "<text x=\"{0:.0f}\" y=\"{1:.1f}\" text-anchor=\"end\">memory {2}</text>\n"
        "<text x=\"{0:.0f}\" y=\"{3:.1f}\" text-anchor=\"end\">{4}</text>\n"
        "<path d=\"{5}\" style=\"fill:none;stroke:var(--c2);stroke-width:1.4\"></path>\n",
        left - 8, y + 24, html_escaped(replica.device->name()), y + 11, format_bytes(most), path);
  }

  std::string draw_axis(double y) const {
    std::string svg;
    constexpr int ticks = 8;
    for (int i = 0; i <= ticks; ++i) {
      const double at = shown_.seconds() * i / ticks;
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{:.4g} ms</text>\n",
                         x_of(shown_.start + at), y + 14, i == ticks ? "end" : "middle", 1e3 * at);
    }
    return svg;
  }

  const Profile& profile_;
  TimeSpan shown_;
  double scale_ = 1;  // points a second
  std::vector<Row> rows_;
};

}  // namespace

std::string timeline_svg(const Profile& profile, size_t steps) {
  return StepTimeline(profile, steps).draw();
}

}  // namespace tandem
