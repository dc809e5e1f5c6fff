#include "models/xtts/xtts_export.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "tandem/error.h"
#include "util/atomic_file.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

constexpr const char* mel_stats = "mel_stats";

// Everything that will be written, gathered first so that the total is known.
struct Plan {
  TensorsToWrite model, dvae, speakers;
  std::optional<TensorToWrite> stats;
  std::vector<std::shared_ptr<TensorFile>> open_files;
  std::vector<std::string> left_out;
};

TensorToWrite reading(const std::shared_ptr<TensorFile>& file, const TensorEntry& entry) {
  return {.type = entry.type, .shape = entry.shape, .make = [file, name = entry.name] {
            return file->read(name);
          }};
}

// All below `prefix` of a file, under the rest of their names.
TensorsToWrite all_of(const std::shared_ptr<TensorFile>& file, const std::string& prefix) {
  TensorsToWrite found;
  for (const TensorEntry& entry : file->entries()) {
    if (entry.name.starts_with(prefix))
      found.emplace(entry.name.substr(prefix.size()), reading(file, entry));
  }
  return found;
}

std::shared_ptr<TensorFile> keep_open(Plan& plan, const fs::path& path) {
  plan.open_files.push_back(open_tensor_file(path));
  return plan.open_files.back();
}

void plan_dvae(Plan& plan, const XttsFolder& from, const std::shared_ptr<TensorFile>& weights) {
  // A trainer's checkpoint holds the DVAE beside the model.
  if (weights->has("model/dvae.codebook.embed")) plan.dvae = all_of(weights, "model/dvae.");
  if (!from.dvae_file.empty()) {
    const auto file = keep_open(plan, from.dvae_file);
    plan.dvae = all_of(file, file->has("model/codebook.embed") ? "model/" : "");
  }
}

void plan_stats(Plan& plan, const XttsFolder& from) {
  if (const auto found = plan.model.find(mel_stats); found != plan.model.end()) {
    plan.stats = found->second;
  } else if (!from.mel_stats_file.empty()) {
    const auto file = keep_open(plan, from.mel_stats_file);
    if (file->entries().size() != 1) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("`{}` holds {} tensors; expected one, the mel_stats",
                              from.mel_stats_file.string(), file->entries().size()));
    }
    plan.stats = reading(file, file->entries()[0]);
    plan.model.emplace(mel_stats, *plan.stats);
  }
}

Plan make_plan(const XttsFolder& from, const XttsExportOptions& options) {
  Plan plan;
  XttsFolder::OpenWeights open = from.open_weights();
  const std::shared_ptr<TensorFile> weights = std::move(open.file);
  plan.open_files.push_back(weights);
  plan.model = xtts_tensors(*weights, open.prefix, options.target, &plan.left_out);
  plan_dvae(plan, from, weights);
  plan_stats(plan, from);
  if (!from.speakers_file.empty()) plan.speakers = all_of(keep_open(plan, from.speakers_file), "");
  if (options.precision) {
    plan.model = in_precision(plan.model, *options.precision);
    plan.dvae = in_precision(plan.dvae, *options.precision);
  }
  plan.dvae.erase(mel_stats);
  return plan;
}

uint64_t bytes_of(const TensorsToWrite& tensors) {
  uint64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += tensor.bytes();
  return bytes;
}

class Exporter {
 public:
  Exporter(const XttsFolder& from, fs::path out, const XttsExportOptions& options)
      : from_(from), out_(std::move(out)), options_(options), plan_(make_plan(from, options)) {
    total_ = bytes_of(plan_.model) + bytes_of(plan_.dvae) + bytes_of(plan_.speakers);
    on_written_ = [this](uint64_t bytes) {
      done_ += bytes;
      if (options_.on_progress) options_.on_progress(std::min(done_, total_), total_);
    };
  }

  XttsExported run() {
    options_.target == XttsTarget::coqui ? write_coqui() : write_ours();
    copy(from_.path / "config.json", "config.json");
    copy(from_.vocabulary_file, "vocab.json");
    exported_.left_out = plan_.left_out;
    return std::move(exported_);
  }

 private:
  void copy(const fs::path& file, const std::string& name) {
    write_file_atomically(out_ / name, read_file(file));
    note(name, 0);
  }

  void note(const std::string& name, uint64_t tensors) {
    exported_.files.push_back({name, tensors, fs::file_size(out_ / name)});
  }

  void write_ours() {
    ours("model.safetensors", plan_.model);
    // With the mels' divisor the file alone turns sound into codes.
    if (!plan_.dvae.empty() && plan_.stats) plan_.dvae.emplace(mel_stats, *plan_.stats);
    ours("dvae.safetensors", plan_.dvae);
    ours("speakers.safetensors", plan_.speakers);
  }

  void ours(const std::string& name, const TensorsToWrite& tensors) {
    if (tensors.empty()) return;
    write_safetensors(out_ / name, tensors, {{"format", "pt"}, {"model", "xtts"}}, on_written_);
    note(name, tensors.size());
  }

  void write_coqui() {
    coqui("model.pth", plan_.model, [](const std::string& name) {
      return std::vector<std::string>{"model", name};
    });
    coqui("dvae.pth", plan_.dvae,
          [](const std::string& name) { return std::vector<std::string>{name}; });
    // {speaker: {gpt_cond_latent, speaker_embedding}}: Coqui takes the two by their order, which
    // is that of the alphabet.
    coqui("speakers_xtts.pth", plan_.speakers, [](const std::string& name) {
      const size_t slash = name.rfind('/');
      if (slash == name.npos) return std::vector<std::string>{name};
      return std::vector<std::string>{name.substr(0, slash), name.substr(slash + 1)};
    });
    if (plan_.stats) {
      write_pth(out_ / "mel_stats.pth", {{.path = {}, .value = *plan_.stats}});
      note("mel_stats.pth", 1);
    }
  }

  template <class PathOf>
  void coqui(const std::string& name, const TensorsToWrite& tensors, const PathOf& path_of) {
    if (tensors.empty()) return;
    std::vector<PthItem> items;
    for (const auto& [key, tensor] : tensors)
      items.push_back({.path = path_of(key), .value = tensor});
    write_pth(out_ / name, items, on_written_);
    note(name, tensors.size());
  }

  const XttsFolder& from_;
  fs::path out_;
  const XttsExportOptions& options_;
  Plan plan_;
  uint64_t done_ = 0, total_ = 0;
  OnBytesWritten on_written_;
  XttsExported exported_;
};

}  // namespace

XttsExported export_xtts(const XttsFolder& from, const fs::path& out,
                         const XttsExportOptions& options) {
  return Exporter(from, out, options).run();
}

}  // namespace tandem
