// The profile for people and for programs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "device/logical_device.h"
#include "observe/profile_overlap.h"
#include "observe/profile_summary.h"
#include "util/text.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t most_rows = 12;  // of a table of operations on the terminal

std::string rate(double value, const char* unit) {
  if (value <= 0) return "–";
  return value >= 1e12  ? fmt::format("{:.1f} T{}", value / 1e12, unit)
         : value >= 1e9 ? fmt::format("{:.1f} G{}", value / 1e9, unit)
         : value >= 1e6 ? fmt::format("{:.1f} M{}", value / 1e6, unit)
                        : fmt::format("{:.1f} k{}", value / 1e3, unit);
}

// Names of one family differ at their ends.
std::string cut_to(const std::string& name, size_t most) {
  if (name.size() <= most) return name;
  const size_t end = most / 2, start = most - end - 2;
  return name.substr(0, start) + ".." + name.substr(name.size() - end);
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string work_table(const char* title, const std::vector<WorkRow>& rows) {
  if (rows.empty()) return "";
  std::string text = fmt::format("\n{:<44} {:>8} {:>9} {:>8} {:>13} {:>12} {:>9}\n", title, "calls",
                                 "ms", "of step", "FLOP/s", "B/s", "of limit");
  for (size_t i = 0; i < std::min(most_rows, rows.size()); ++i) {
    const WorkRow& row = rows[i];
    text +=
        fmt::format("{:<44} {:>8.1f} {:>9.3f} {:>8} {:>13} {:>12} {:>9}\n", cut_to(row.name, 44),
                    row.calls, 1e3 * row.seconds, percent(row.share), rate(row.flops, "FLOP/s"),
                    rate(row.bytes, "B/s"), row.limit > 0 ? percent(row.limit) : "–");
  }
  if (rows.size() > most_rows) {
    double rest = 0;
    for (size_t i = most_rows; i < rows.size(); ++i) rest += rows[i].seconds;
    text += fmt::format("{:<44} {:>8} {:>9.3f}\n",
                        fmt::format("{} others", rows.size() - most_rows), "", 1e3 * rest);
  }
  return text;
}

std::string replica_text(const Profile& profile, size_t rank) {
  const ProfiledReplica& replica = profile.replicas[rank];
  const StepFigures step = step_figures_of(profile, replica);
  std::string text = fmt::format(
      "{} ({}), stage {}, {} rows: {:.3f} ms a step ± {:.3f} (median {:.3f}, p95 {:.3f}), {:.0f} "
      "tok/s\n",
      replica.device->name(), replica.device->info().hardware, profile.stage, profile.rows,
      1e3 * step.mean, 1e3 * step.deviation, 1e3 * step.median, 1e3 * step.p95,
      step.mean > 0 ? profile.tokens_a_step / step.mean : 0);
  text += fmt::format("{:<44} {:>9} {:>9} {:>8} {:>9}\n", "part", "ms", "±", "of step", "host ms");
  for (const PartRow& part : step.parts)
    text += fmt::format("{:<44} {:>9.3f} {:>9.3f} {:>8} {:>9.3f}\n", part.name, 1e3 * part.seconds,
                        1e3 * part.deviation, percent(part.share), 1e3 * part.host_seconds);
  text += work_table("kernel", kernel_rows(profile, rank));
  const bool launches = replica.device->kind() == DeviceKind::cuda;
  text += work_table(launches ? "operation (time of its launch)" : "operation",
                     operation_rows(profile, rank));
  if (replica.limits.flops > 0)
    text += fmt::format("limits, measured: {} (a large product), {} (a copy)\n",
                        rate(replica.limits.flops, "FLOP/s"), rate(replica.limits.bytes, "B/s"));
  text += "\nmemory\n";
  for (const auto& [name, bytes] : replica.memory)
    text += fmt::format("  {:<42} {:>12}\n", name, format_bytes(bytes));
  text += fmt::format("  {:<42} {:>12}\n  {:<42} {:>12}\n", "a step on top of it, at most",
                      format_bytes(replica.largest_rise), "most at any moment seen",
                      format_bytes(replica.most_used));
  if (replica.captures > 0)
    text += fmt::format("{} graphs were captured while steps were timed\n", replica.captures);
  return text;
}

std::string overlap_line(const char* name, const Overlap& overlap) {
  if (overlap.seconds <= 0) return fmt::format("{}: none\n", name);
  return fmt::format("{}: {:.3f} ms, {} of it while the step computed\n", name,
                     1e3 * overlap.seconds, percent(overlap.hidden / overlap.seconds));
}

Json work_json(const std::vector<WorkRow>& rows) {
  Json list = Json::array();
  const auto known = [](double value) { return value > 0 ? Json(value) : Json(); };
  for (const WorkRow& row : rows)
    list.push_back({{"name", row.name},
                    {"calls", row.calls},
                    {"ms", 1e3 * row.seconds},
                    {"share", row.share},
                    {"flops_per_second", known(row.flops)},
                    {"bytes_per_second", known(row.bytes)},
                    {"share_of_limit", known(row.limit)}});
  return list;
}

Json overlap_json(const Overlap& overlap) {
  return {{"ms", 1e3 * overlap.seconds},
          {"hidden_ms", 1e3 * overlap.hidden},
          {"share", overlap.seconds > 0 ? Json(overlap.hidden / overlap.seconds) : Json()}};
}

Json replica_json(const Profile& profile, size_t rank) {
  const ProfiledReplica& replica = profile.replicas[rank];
  const StepFigures step = step_figures_of(profile, replica);
  Json parts = Json::array(), memory = Json::object();
  for (const PartRow& part : step.parts)
    parts.push_back({{"name", part.name},
                     {"ms", 1e3 * part.seconds},
                     {"deviation_ms", 1e3 * part.deviation},
                     {"share", part.share},
                     {"host_ms", 1e3 * part.host_seconds}});
  for (const auto& [name, bytes] : replica.memory) memory[name] = bytes;
  const auto known = [](double value) { return value > 0 ? Json(value) : Json(); };
  return {{"device", replica.device->name()},
          {"hardware", replica.device->info().hardware},
          {"steps", step.steps},
          {"step_ms", 1e3 * step.mean},
          {"deviation_ms", 1e3 * step.deviation},
          {"median_ms", 1e3 * step.median},
          {"p95_ms", 1e3 * step.p95},
          {"wall_ms", 1e3 * step.wall},
          {"accounted", step.accounted},
          {"captures", replica.captures},
          {"parts", std::move(parts)},
          {"kernels", work_json(kernel_rows(profile, rank))},
          {"operations", work_json(operation_rows(profile, rank))},
          {"limits",
           {{"flops_per_second", known(replica.limits.flops)},
            {"bytes_per_second", known(replica.limits.bytes)}}},
          {"memory",
           {{"parts", std::move(memory)},
            {"largest_rise", replica.largest_rise},
            {"most_used", replica.most_used}}}};
}

}  // namespace

std::string profile_text(const Profile& profile) {
  std::string text;
  for (size_t rank = 0; rank < profile.replicas.size(); ++rank)
    text += (rank > 0 ? "\n" : "") + replica_text(profile, rank);
  text += work_table("beside the step", feed_rows(profile));
  const Overlaps overlaps = overlaps_of(profile);
  text += "\n" + overlap_line("copies to the model", overlaps.copies) +
          overlap_line("everything beside the step", overlaps.beside);
  if (!profile.kernels.failure.empty())
    text += fmt::format("kernels could not be traced: {}\n", profile.kernels.failure);
  if (profile.cost.plain > 0)
    text += fmt::format(
        "the profiling itself: a step takes {:.3f} ms without it, {:+.1f} % timed, {:+.1f} % "
        "traced\n",
        1e3 * profile.cost.plain, 100 * profile.cost.timing(), 100 * profile.cost.tracing());
  return text;
}

std::string profile_json(const Profile& profile) {
  Json document = {{"stage", profile.stage},
                   {"precision", profile.precision},
                   {"rows", profile.rows},
                   {"accumulation", profile.accumulation},
                   {"tokens_a_step", profile.tokens_a_step}};
  document["replicas"] = Json::array();
  for (size_t rank = 0; rank < profile.replicas.size(); ++rank)
    document["replicas"].push_back(replica_json(profile, rank));
  document["beside"] = work_json(feed_rows(profile));
  const Overlaps overlaps = overlaps_of(profile);
  document["overlap"] = {{"copies", overlap_json(overlaps.copies)},
                         {"beside", overlap_json(overlaps.beside)}};
  document["kernels_failure"] =
      profile.kernels.failure.empty() ? Json() : Json(profile.kernels.failure);
  document["operations_dropped"] = profile.operations.dropped;
  document["cost"] = profile.cost.plain > 0 ? Json{{"plain_step_ms", 1e3 * profile.cost.plain},
                                                   {"timed_step_ms", 1e3 * profile.cost.timed},
                                                   {"traced_step_ms", 1e3 * profile.cost.traced},
                                                   {"timing", profile.cost.timing()},
                                                   {"tracing", profile.cost.tracing()}}
                                            : Json();
  return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tandem
