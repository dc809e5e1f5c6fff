// The profile for programs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "device/logical_device.h"
#include "observe/profile_overlap.h"
#include "observe/profile_summary.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

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

// Shares are null where the machine was too busy to tell them.
Json cost_json(const ProfileCost& cost) {
  if (cost.plain <= 0) return {};
  const auto told = [&](double share) { return cost.told() ? Json(share) : Json(); };
  return {{"plain_step_ms", 1e3 * cost.plain},   {"timed_step_ms", 1e3 * cost.timed},
          {"traced_step_ms", 1e3 * cost.traced}, {"noise", cost.noise},
          {"timing", told(cost.timing())},       {"tracing", told(cost.tracing())}};
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

// Of generating.
Json batch_json(const Profile& profile, const ProfiledReplica& replica) {
  const BatchFigures batch = batch_figures_of(profile, replica);
  const auto known = [](double value) { return value > 0 ? Json(value) : Json(); };
  Json following;
  if (batch.following > 0)
    following = {{"ms", 1e3 * batch.following},
                 {"clips_per_second", batch.following_clips_per_second},
                 {"hidden", batch.hidden}};
  return {{"clips", replica.rows},
          {"clips_per_second", batch.clips_per_second},
          {"decoding_steps", profile.music->decoding_steps},
          {"decoding_step_ms", known(1e3 * batch.decoding_step)},
          {"following", std::move(following)}};
}

}  // namespace

std::string profile_json(const Profile& profile) {
  Json document = {{"for", profile.generates() ? "generate" : "train"},
                   {"stage", profile.stage},
                   {"precision", profile.precision},
                   {"rows", profile.rows},
                   {"accumulation", profile.accumulation},
                   {"tokens_a_step", profile.tokens_a_step}};
  document["replicas"] = Json::array();
  for (size_t rank = 0; rank < profile.replicas.size(); ++rank) {
    document["replicas"].push_back(replica_json(profile, rank));
    if (profile.music)
      document["replicas"].back()["batch"] = batch_json(profile, profile.replicas[rank]);
  }
  if (profile.music)
    document["tokens"] = {{"timed", profile.music->tokens},
                          {"traced", profile.music->traced_tokens}};
  document["beside"] = work_json(feed_rows(profile));
  if (!profile.generates()) {
    const Overlaps overlaps = overlaps_of(profile);
    document["overlap"] = {{"copies", overlap_json(overlaps.copies)},
                           {"beside", overlap_json(overlaps.beside)}};
  }
  document["kernels_failure"] =
      profile.kernels.failure.empty() ? Json() : Json(profile.kernels.failure);
  document["work_failure"] = profile.work_failure.empty() ? Json() : Json(profile.work_failure);
  document["operations_dropped"] = profile.operations.dropped;
  document["cost"] = cost_json(profile.cost);
  return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tandem
