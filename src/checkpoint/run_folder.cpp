#include "checkpoint/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "checkpoint/tensor_writing.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/folder_lock.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

std::string format_state(const RunState& state) {
  nlohmann::ordered_json json = {{"format", 1},
                                 {"step", state.step},
                                 {"next_batch", state.next_batch},
                                 {"finished", state.finished},
                                 {"last_loss", state.last_loss},
                                 {"validations_without_gain", state.validations_without_gain},
                                 {"skipped", state.skipped},
                                 {"owes_checks", state.owes_checks},
                                 {"seconds", state.seconds},
                                 {"divisions", state.divisions},
                                 {"best_step", state.best_step},
                                 {"counted_loss", nullptr},
                                 {"best_loss", nullptr}};
  if (state.best_loss) json["best_loss"] = *state.best_loss;
  if (state.counted_loss) json["counted_loss"] = *state.counted_loss;
  return json.dump(2) + "\n";
}

RunState parse_state(const fs::path& path) {
  const auto json = nlohmann::json::parse(read_file(path), nullptr, false);
  RunState state;
  if (json.is_discarded())
    throw Error(ErrorKind::corrupt, fmt::format("`{}` is empty or cut short", path.string()));
  try {
    state.step = json.at("step").get<int64_t>();
    state.next_batch = json.at("next_batch").get<int64_t>();
    state.finished = json.at("finished").get<bool>();
    state.last_loss = json.at("last_loss").get<double>();
    if (!json.at("best_loss").is_null()) state.best_loss = json.at("best_loss").get<double>();
    state.validations_without_gain = json.value("validations_without_gain", int64_t{0});
    state.skipped = json.value("skipped", int64_t{0});
    state.owes_checks = json.value("owes_checks", false);
    state.seconds = json.value("seconds", 0.0);
    state.divisions = json.value("divisions", std::vector<int64_t>());
    state.best_step = json.value("best_step", int64_t{0});
    if (json.contains("counted_loss") && !json.at("counted_loss").is_null())
      state.counted_loss = json.at("counted_loss").get<double>();
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}` is not a run's state: {}", path.string(), error.what()));
  }
  return state;
}

// A `latest` that leads nowhere counts: the run it belonged to is damaged, not new.
bool has_latest(const fs::path& run) {
  std::error_code ignored;
  const fs::file_type type = fs::symlink_status(run / "latest", ignored).type();
  return type != fs::file_type::not_found && type != fs::file_type::none;
}

NamedTensors to_list(SafetensorsFile file) {
  NamedTensors list;
  for (auto& [name, tensor] : file.tensors) list.emplace_back(name, tensor);
  return list;
}

// A run's folder itself, in which another process may be at work.
void remove_leftovers_unless_used(const fs::path& run) {
  try {
    const FolderLock alone(run);
    FolderDraft::remove_leftovers(run);
  } catch (const Error&) {
  }
}

}  // namespace

fs::path RunFolder::checkpoint_path(int64_t step) const {
  return path_ / fmt::format("step-{}", step);
}

std::vector<int64_t> RunFolder::saved_steps() const {
  std::vector<int64_t> steps;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("step-")) continue;
    if (const auto step = parse_int(name.substr(5))) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

void RunFolder::save(const Checkpoint& checkpoint, bool is_best, int64_t keep) const {
  make_folder(path_);
  const std::string name = checkpoint_path(checkpoint.state.step).filename().string();
  FolderDraft draft(path_ / name);
  write_safetensors(draft.path() / "model.safetensors", checkpoint.weights);
  write_safetensors(draft.path() / "optimizer.safetensors", checkpoint.optimizer);
  if (!checkpoint.average.empty())
    write_safetensors(draft.path() / "average.safetensors", checkpoint.average);
  if (!checkpoint.buffers.empty())
    write_safetensors(draft.path() / "buffers.safetensors", checkpoint.buffers);
  write_file_atomically(draft.path() / "state.json", format_state(checkpoint.state));
  draft.commit();
  // In this order: a run that is killed in between goes on from the checkpoint before, and finds
  // this one again.
  if (is_best) point_link(path_ / "best", name);
  point_link(path_ / "latest", name);
  remove_old(keep);
}

void RunFolder::remove_old(int64_t keep) const {
  std::error_code ignored;
  const fs::path best = fs::read_symlink(path_ / "best", ignored);
  // Not always the newest by number: one a killed process saved but did not name may be ahead.
  const fs::path latest = fs::read_symlink(path_ / "latest", ignored);
  const std::vector<int64_t> steps = saved_steps();
  for (size_t i = 0; i + static_cast<size_t>(std::max<int64_t>(keep, 1)) < steps.size(); ++i) {
    const fs::path old = checkpoint_path(steps[i]);
    if (old.filename() != best && old.filename() != latest) remove_tree(old);
  }
}

void RunFolder::remove_leftovers() const {
  FolderDraft::remove_leftovers(path_);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-")) FolderDraft::remove_leftovers(entry.path());
    if (name.starts_with("bad-step-")) remove_leftovers_unless_used(entry.path());
  }
  for (const auto& entry : fs::directory_iterator(path_ / "samples", ignored))
    FolderDraft::remove_leftovers(entry.path());
}

std::optional<RunState> RunFolder::latest_state() const {
  if (!has_latest(path_)) return std::nullopt;
  return parse_state(path_ / "latest" / "state.json");
}

void RunFolder::mark_finished() const {
  RunState state = latest_state().value();
  state.finished = true;
  write_file_atomically(path_ / "latest" / "state.json", format_state(state));
}

Checkpoint RunFolder::load(const fs::path& from) const {
  Checkpoint checkpoint;
  checkpoint.state = parse_state(from / "state.json");
  checkpoint.weights = to_list(read_safetensors(from / "model.safetensors"));
  checkpoint.optimizer = to_list(read_safetensors(from / "optimizer.safetensors"));
  if (fs::exists(from / "average.safetensors"))
    checkpoint.average = to_list(read_safetensors(from / "average.safetensors"));
  if (fs::exists(from / "buffers.safetensors"))
    checkpoint.buffers = to_list(read_safetensors(from / "buffers.safetensors"));
  return checkpoint;
}

std::optional<Checkpoint> RunFolder::load_best() const {
  if (!fs::exists(path_ / "best")) return load_latest();
  return load(path_ / "best");
}

std::optional<Checkpoint> RunFolder::load_latest() const {
  if (!has_latest(path_)) return std::nullopt;
  try {
    return load(path_ / "latest");
  } catch (const Error& error) {
    std::error_code ignored;
    const fs::path latest = fs::read_symlink(path_ / "latest", ignored);
    std::string advice = "start again with --fresh";
    for (const int64_t step : saved_steps()) {
      if (checkpoint_path(step).filename() == latest) break;
      advice = fmt::format("point `{}` at `step-{}`, the one before it",
                           (path_ / "latest").string(), step);
    }
    std::throw_with_nested(
        Error(error.kind(),
              fmt::format("the latest checkpoint of `{}` cannot be used", path_.string()))
            .hint(advice));
  }
}

namespace {

fs::path unused(const fs::path& wanted) {
  if (!fs::exists(wanted)) return wanted;
  for (int i = 2;; ++i) {
    const fs::path next = wanted.string() + "-" + std::to_string(i);
    if (!fs::exists(next)) return next;
  }
}

using Parts = std::vector<std::string>;

bool is_used(const fs::path& run, const Parts& parts) {
  return std::ranges::any_of(parts, [&](const auto& part) { return has_latest(run / part); });
}

bool is_finished(const fs::path& run, const Parts& parts) {
  return std::ranges::all_of(parts, [&](const auto& part) {
    const auto state = RunFolder(run / part).latest_state();
    return state && state->finished;
  });
}

std::optional<fs::path> newest_unfinished(const fs::path& runs, const std::string& fingerprint,
                                          const Parts& parts) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(runs, ignored)) {
    const fs::path mark = entry.path() / parts.front() / "fingerprint";
    if (!fs::exists(mark) || trim(read_file(mark)) != fingerprint) continue;
    if (is_used(entry.path(), parts) && !is_finished(entry.path(), parts))
      found.push_back(entry.path());
  }
  if (found.empty()) return std::nullopt;
  return *std::max_element(found.begin(), found.end());
}

}  // namespace

RunChoice choose_run_folder(const std::string& wanted, bool fresh, const std::string& fingerprint,
                            const fs::path& runs, const Parts& parts) {
  if (!wanted.empty()) {
    const bool used = is_used(wanted, parts);
    if (fresh && used) return {unused(wanted), false};
    return {wanted, used};
  }
  if (!fresh) {
    if (const auto unfinished = newest_unfinished(runs, fingerprint, parts))
      return {*unfinished, true};
  }
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  char name[32];
  std::strftime(name, sizeof name, "%Y-%m-%d_%H-%M-%S", localtime_r(&now, &local));
  return {unused(runs / name), false};
}

}  // namespace tandem
