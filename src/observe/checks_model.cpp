#include "observe/checks_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/musicgen/musicgen_folder.h"
#include "models/xtts/xtts_folder.h"
#include "tandem/error.h"
#include "text/tokenizer.h"
#include "util/clock.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

constexpr const char* copy_again = "copy or download the folder again; what is there is not whole";

// What the names of a model's tensors must begin with, and what that is.
struct Part {
  std::string start, what;
};

bool has_some(const TensorFile& file, const std::string& start) {
  const auto& entries = file.entries();
  return std::any_of(entries.begin(), entries.end(),
                     [&](const TensorEntry& entry) { return entry.name.starts_with(start); });
}

Check weights_check(const TensorFile& file, const std::vector<Part>& parts, const fs::path& path) {
  uint64_t bytes = 0;
  for (const TensorEntry& entry : file.entries()) bytes += static_cast<uint64_t>(entry.bytes());
  Check check{.name = "weights",
              .found = fmt::format("`{}`, {}, {} tensors, {}", path.filename().string(),
                                   file.format(), file.entries().size(), format_bytes(bytes))};
  std::vector<std::string> missing;
  for (const Part& part : parts)
    if (!has_some(file, part.start)) missing.push_back(part.what);
  if (missing.empty()) return check;
  constexpr size_t told = 4;
  const size_t more = missing.size() - std::min(told, missing.size());
  missing.resize(std::min(told, missing.size()));
  check.verdict = Verdict::fail;
  check.found += fmt::format("; missing: {}{}", join(missing, ", "),
                             more > 0 ? fmt::format(" and {} more", more) : "");
  check.advice = copy_again;
  return check;
}

void add_layers(std::vector<Part>& parts, const std::string& start, int64_t layers,
                const std::string& what) {
  for (int64_t i = 0; i < layers; ++i)
    parts.push_back({fmt::format("{}{}.", start, i), fmt::format("layer {} of {}", i, what)});
}

std::vector<Check> check_xtts(const fs::path& path) {
  const XttsFolder folder = XttsFolder::open(path);
  const XttsGptSize& gpt = folder.config.gpt;
  std::vector<Check> checks{
      {.name = "model",
       .found = fmt::format("`{}`: XTTS {}, {} layers, width {}, {} text tokens", path.string(),
                            gpt.perceiver ? "v2" : "v1", gpt.layers, gpt.width, gpt.text_tokens)}};
  load_tokenizer(folder.vocabulary_file.string());
  const auto open = folder.open_weights();
  std::vector<Part> parts = {
      {open.prefix + "gpt.text_embedding.", "the text embedding"},
      {open.prefix + "gpt.mel_embedding.", "the audio embedding"},
      {open.prefix + "gpt.conditioning_encoder.", "the conditioning encoder"},
      {open.prefix + "hifigan_decoder.waveform_decoder.", "the vocoder"},
      {open.prefix + "hifigan_decoder.speaker_encoder.", "the speaker encoder"}};
  add_layers(parts, open.prefix + "gpt.gpt.h.", gpt.layers, "the GPT");
  checks.push_back(weights_check(*open.file, parts, folder.weights_file));
  // What is there beside the weights must be whole too.
  for (const fs::path& file : {folder.speakers_file, folder.dvae_file, folder.mel_stats_file})
    if (!file.empty() && file != folder.weights_file) open_tensor_file(file);
  if (folder.dvae_file.empty())
    checks.push_back({.name = "DVAE",
                      .found = "none in the folder",
                      .advice = "speaking needs none; training the GPT does (dvae.pth)"});
  return checks;
}

std::vector<Check> check_musicgen(const fs::path& path) {
  const MusicgenFolder folder = MusicgenFolder::open(path);
  std::vector<Check> checks{
      {.name = "model",
       .found = fmt::format("`{}`: MusicGen, weights in {} {}", path.string(),
                            folder.weights_files.size(),
                            folder.weights_files.size() == 1 ? "file" : "shards")}};
  load_tokenizer(folder.tokenizer_file.string());
  const auto file = folder.open_weights();
  std::vector<Part> parts = {{"text_encoder.", "the text encoder"},
                             {"audio_encoder.", "the codec"},
                             {"decoder.", "the decoder"}};
  add_layers(parts, "decoder.model.decoder.layers.", folder.config.decoder.layers, "the decoder");
  checks.push_back(weights_check(*file, parts, file->path()));
  return checks;
}

Check check_hashes(const std::vector<KnownHash>& hashes) {
  Check check{.name = "hashes"};
  if (hashes.empty()) {
    check.found = "none written down beside the files";
    return check;
  }
  const auto start = Clock::now();
  std::vector<std::string> wrong;
  for (const KnownHash& known : hashes) {
    const std::string digest = digest_of_file(known.file, known.kind);
    if (digest != known.digest)
      wrong.push_back(fmt::format("`{}` is {}…, {} says {}…", known.file.filename().string(),
                                  digest.substr(0, 12), known.from, known.digest.substr(0, 12)));
  }
  check.found = wrong.empty() ? fmt::format("{} {} right ({}, {})", hashes.size(),
                                            hashes.size() == 1 ? "file is" : "files are",
                                            hashes[0].from, format_seconds(seconds_since(start)))
                              : join(wrong, "; ");
  if (!wrong.empty()) {
    check.verdict = Verdict::fail;
    check.advice = "copy or download these files again";
  }
  return check;
}

}  // namespace

std::vector<Check> check_model_folder(const fs::path& folder) {
  try {
    std::vector<Check> checks =
        MusicgenFolder::looks_like(folder) ? check_musicgen(folder) : check_xtts(folder);
    std::error_code ignored;
    const fs::path place = fs::is_directory(folder, ignored) ? folder : folder.parent_path();
    checks.push_back(check_hashes(known_hashes(place)));
    return checks;
  } catch (const Error& error) {
    return {{.verdict = Verdict::fail,
             .name = "model",
             .found = error.what(),
             .advice = error.hint().empty() ? copy_again : error.hint()}};
  }
}

}  // namespace tandem
