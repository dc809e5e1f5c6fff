// The profile for people.
#include <fmt/format.h>

#include "device/logical_device.h"
#include "observe/profile_overlap.h"
#include "observe/profile_summary.h"
#include "util/text.h"

namespace tandem {
namespace {

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

std::string share_heading(const Profile& profile) {
  return std::string("of ") + step_word(profile);
}

std::string work_table(const Profile& profile, const char* title,
                       const std::vector<WorkRow>& rows) {
  if (rows.empty()) return "";
  std::string text = fmt::format("\n{:<44} {:>8} {:>9} {:>8} {:>13} {:>12} {:>9}\n", title, "calls",
                                 "ms", share_heading(profile), "FLOP/s", "B/s", "of limit");
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

std::string heading(const Profile& profile, const ProfiledReplica& replica,
                    const StepFigures& step) {
  const std::string what =
      profile.music ? fmt::format("{} clips of {} tokens", replica.rows, profile.music->tokens)
                    : fmt::format("stage {}, {} rows", profile.stage, profile.rows);
  const std::string speed =
      profile.music
          ? fmt::format("{:.3f} clips/s", batch_figures_of(profile, replica).clips_per_second)
          : fmt::format("{:.0f} tok/s", step.mean > 0 ? profile.tokens_a_step / step.mean : 0);
  return fmt::format("{} ({}), {}: {:.3f} ms a {} ± {:.3f} (median {:.3f}, p95 {:.3f}), {}\n",
                     replica.device->name(), replica.device->info().hardware, what, 1e3 * step.mean,
                     step_word(profile), 1e3 * step.deviation, 1e3 * step.median, 1e3 * step.p95,
                     speed);
}

// Of generating.
std::string batch_text(const Profile& profile, const ProfiledReplica& replica) {
  if (!profile.music) return "";
  const BatchFigures batch = batch_figures_of(profile, replica);
  std::string text = fmt::format("decoding: {} steps a batch, {:.4f} ms a step\n",
                                 profile.music->decoding_steps, 1e3 * batch.decoding_step);
  if (batch.following > 0)
    text += fmt::format(
        "batches that follow each other: {:.3f} ms each, {:.3f} clips/s; {} of sound and writing "
        "behind the next one's decoding\n",
        1e3 * batch.following, batch.following_clips_per_second, percent(batch.hidden));
  return text;
}

std::string replica_text(const Profile& profile, size_t rank) {
  const ProfiledReplica& replica = profile.replicas[rank];
  const StepFigures step = step_figures_of(profile, replica);
  std::string text = heading(profile, replica, step);
  text += fmt::format("{:<44} {:>9} {:>9} {:>8} {:>9}\n", "part", "ms", "±", share_heading(profile),
                      "host ms");
  for (const PartRow& part : step.parts)
    text += fmt::format("{:<44} {:>9.3f} {:>9.3f} {:>8} {:>9.3f}\n", part.name, 1e3 * part.seconds,
                        1e3 * part.deviation, percent(part.share), 1e3 * part.host_seconds);
  text += batch_text(profile, replica);
  text += work_table(profile, "kernel", kernel_rows(profile, rank));
  const bool launches = replica.device->kind() == DeviceKind::cuda;
  text += work_table(profile, launches ? "operation (time of its launch)" : "operation",
                     operation_rows(profile, rank));
  if (replica.limits.flops > 0)
    text += fmt::format("limits, measured: {} (a large product), {} (a copy)\n",
                        rate(replica.limits.flops, "FLOP/s"), rate(replica.limits.bytes, "B/s"));
  text += "\nmemory\n";
  for (const auto& [name, bytes] : replica.memory)
    text += fmt::format("  {:<42} {:>12}\n", name, format_bytes(bytes));
  text += fmt::format("  {:<42} {:>12}\n  {:<42} {:>12}\n",
                      fmt::format("a {} on top of it, at most", step_word(profile)),
                      format_bytes(replica.largest_rise), "most at any moment seen",
                      format_bytes(replica.most_used));
  if (replica.captures > 0)
    text += fmt::format("{} graphs were captured meanwhile\n", replica.captures);
  return text;
}

std::string overlap_line(const char* name, const Overlap& overlap) {
  if (overlap.seconds <= 0) return fmt::format("{}: none\n", name);
  return fmt::format("{}: {:.3f} ms, {} of it while the step computed\n", name,
                     1e3 * overlap.seconds, percent(overlap.hidden / overlap.seconds));
}

std::string cost_line(const Profile& profile) {
  const ProfileCost& cost = profile.cost;
  if (cost.plain <= 0) return "";
  if (!cost.told())
    return fmt::format(
        "the profiling itself: the machine was too busy to tell; the same {} took from {:.3f} ms "
        "without it, {:.3f} ms timed, {:.3f} ms traced, and rounds differed by {:.0f} %\n",
        step_word(profile), 1e3 * cost.plain, 1e3 * cost.timed, 1e3 * cost.traced,
        100 * cost.noise);
  return fmt::format(
      "the profiling itself: a {} takes {:.3f} ms without it, {:+.1f} % timed, {:+.1f} % traced\n",
      step_word(profile), 1e3 * cost.plain, 100 * cost.timing(), 100 * cost.tracing());
}

}  // namespace

std::string profile_text(const Profile& profile) {
  std::string text;
  for (size_t rank = 0; rank < profile.replicas.size(); ++rank)
    text += (rank > 0 ? "\n" : "") + replica_text(profile, rank);
  if (profile.generates()) {
    text += work_table(profile, "beside the batch", feed_rows(profile));
    const MusicFigures& music = *profile.music;
    if (music.traced_tokens < music.tokens)
      text += fmt::format("\nkernels and operations are of clips of {} tokens instead of {}\n",
                          music.traced_tokens, music.tokens);
  } else {
    text += work_table(profile, "beside the step", feed_rows(profile));
    const Overlaps overlaps = overlaps_of(profile);
    text += "\n" + overlap_line("copies to the model", overlaps.copies) +
            overlap_line("everything beside the step", overlaps.beside);
  }
  if (!profile.kernels.failure.empty())
    text += fmt::format("kernels could not be traced: {}\n", profile.kernels.failure);
  if (!profile.work_failure.empty())
    text += fmt::format("the work of kernels could not be told: {}\n", profile.work_failure);
  return text + cost_line(profile);
}

}  // namespace tandem
