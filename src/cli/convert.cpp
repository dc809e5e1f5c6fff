#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "models/xtts/xtts_export.h"
#include "observe/progress.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/log.h"
#include "util/signals.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

constexpr const char* usage_hint = "tandem convert --model DIR --to tandem --out DIR";

std::string needed(const Arguments& arguments, const std::string& flag, const char* what) {
  const std::string value = arguments.value(flag);
  if (value.empty())
    throw Error(ErrorKind::usage, fmt::format("{} is missing: {}", flag, what)).hint(usage_hint);
  return value;
}

XttsTarget target_of(const Arguments& arguments) {
  const std::string name = needed(arguments, "--to", "expected coqui or tandem");
  if (name == "coqui") return XttsTarget::coqui;
  if (name == "tandem") return XttsTarget::tandem;
  throw Error(ErrorKind::usage, fmt::format("--to is `{}`; expected coqui or tandem", name));
}

std::optional<at::ScalarType> precision_of(const Arguments& arguments) {
  const std::string name = arguments.value("--precision");
  if (name.empty()) return std::nullopt;
  if (name == "fp32") return at::kFloat;
  if (name == "fp16") return at::kHalf;
  if (name == "bf16") return at::kBFloat16;
  throw Error(ErrorKind::usage,
              fmt::format("--precision is `{}`; expected fp32, fp16 or bf16", name));
}

// What --force may replace: an empty folder, or one that holds a model.
bool replaceable(const fs::path& out) {
  std::error_code ignored;
  if (fs::is_empty(out, ignored)) return true;
  return fs::exists(out / "config.json", ignored) &&
         (fs::exists(out / "model.safetensors", ignored) || fs::exists(out / "model.pth", ignored));
}

void check_place(const fs::path& out, const fs::path& from, bool force) {
  std::error_code ignored;
  const fs::path place = fs::weakly_canonical(out, ignored),
                 source = fs::weakly_canonical(from, ignored);
  const fs::path relative = source.lexically_relative(place);
  if (relative == "." || (!relative.empty() && *relative.begin() != ".."))
    throw Error(ErrorKind::usage,
                fmt::format("--out `{}` is the model's own folder or holds it", out.string()));
  if (!fs::exists(out, ignored)) return;
  if (!force) {
    throw Error(ErrorKind::io, fmt::format("`{}` is there already", out.string()))
        .hint("choose another --out, or replace it with --force");
  }
  if (!fs::is_directory(out, ignored) || !replaceable(out)) {
    throw Error(ErrorKind::io, fmt::format("`{}` holds something other than a model, which --force "
                                           "does not replace",
                                           out.string()))
        .hint("choose another --out");
  }
}

// Progress in MiB; also stops the copy on Ctrl-C.
class CopyView {
 public:
  void update(uint64_t done, uint64_t total) {
    const StopRequest stop = stop_requested();
    if (stop != StopRequest::none) {
      throw Error(stop == StopRequest::interrupted ? ErrorKind::interrupted : ErrorKind::terminated,
                  "stopped; nothing was written");
    }
    const auto units = [](uint64_t bytes) { return static_cast<int64_t>((bytes + mib - 1) / mib); };
    const int64_t all = units(total), every = std::max<int64_t>(1, all / 20);
    if (!bar_) bar_ = std::make_unique<Progress>(0, all, every, "MiB");
    int64_t now = units(done);
    if (!terminal_wants_progress() && now < all) now -= now % every;
    if (now == shown_) return;
    shown_ = now;
    bar_->update(now, "");
    if (done >= total) bar_.reset();
  }

 private:
  static constexpr uint64_t mib = 1 << 20;
  int64_t shown_ = 0;
  std::unique_ptr<Progress> bar_;
};

void print_result(const XttsExported& exported, const fs::path& out, bool json) {
  if (json) {
    nlohmann::ordered_json document = {{"out", out.string()}, {"files", nlohmann::json::array()}};
    for (const auto& file : exported.files) {
      document["files"].push_back(
          {{"name", file.name}, {"tensors", file.tensors}, {"bytes", file.bytes}});
    }
    document["left_out"] = exported.left_out;
    print(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  std::string text = fmt::format("written      {}\n", out.string());
  for (const auto& file : exported.files) {
    const std::string tensors = file.tensors == 0 ? ""
                                                  : fmt::format(", {} tensor{}", file.tensors,
                                                                file.tensors == 1 ? "" : "s");
    text += fmt::format("             {:<22}{}{}\n", file.name, format_bytes(file.bytes), tensors);
  }
  if (!exported.left_out.empty()) {
    text += fmt::format("left out     {} tensors that neither form needs, such as `{}`\n",
                        exported.left_out.size(), exported.left_out[0]);
  }
  print(text.substr(0, text.size() - 1));
}

int run_convert(const Arguments& arguments) {
  if (!arguments.rest.empty()) {
    throw Error(ErrorKind::usage, fmt::format("`{}` is no option", arguments.rest[0]))
        .hint(usage_hint);
  }
  const fs::path model = needed(arguments, "--model", "which folder?");
  const fs::path out = needed(arguments, "--out", "where to?");
  XttsExportOptions options{.target = target_of(arguments), .precision = precision_of(arguments)};
  const XttsFolder from = XttsFolder::open(model);
  check_place(out, from.path, arguments.has("--force"));
  catch_stop_signals();
  CopyView view;
  options.on_progress = [&](uint64_t done, uint64_t total) { view.update(done, total); };
  FolderDraft draft(out.has_filename() ? out : out.parent_path());
  const XttsExported exported = export_xtts(from, draft.path(), options);
  draft.commit();
  print_result(exported, out, arguments.has("--json"));
  return 0;
}

}  // namespace

Command convert_command() {
  return {
      .name = "convert",
      .summary = "turn a model's folder into Coqui's form or into ours",
      .rest = "",
      .details =
          "Coqui's folders are read as they are; ours load faster and hold no pickles. What is\n"
          "written with --to coqui loads in coqui-tts.\n\n"
          "  tandem convert --model XTTS-v2 --to tandem --out models/xtts\n"
          "  tandem convert --model runs/mine/latest --to coqui --out mine --precision fp16",
      .settings = 0,
      .chooses_devices = false,
      .options = {{"--model", "DIR", "the model's folder, or its weights file"},
                  {"--to", "FORM", "coqui or tandem"},
                  {"--out", "DIR", "the new folder"},
                  {"--precision", "P",
                   "fp32, fp16 or bf16 for matrices and kernels (default: "
                   "as they are)"},
                  {"--force", "", "replace a model that is there already"},
                  {"--json", "", "one JSON document"}},
      .run = run_convert};
}

}  // namespace tandem
