#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/inspect_musicgen.h"
#include "cli/inspect_report.h"
#include "models/xtts/xtts_folder.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

// 441018563 -> "441,018,563"
std::string grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (auto place = static_cast<int64_t>(text.size()) - 3; place > 0; place -= 3)
    text.insert(static_cast<size_t>(place), ",");
  return text;
}

// Names and texts of a file for a terminal: no control characters, not endless.
std::string for_terminal(const std::string& text, size_t longest = 200) {
  std::string clean = text.substr(0, longest);
  for (char& letter : clean) {
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f) letter = '?';
  }
  return text.size() > longest ? clean + "..." : clean;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Enough for any honest file.
std::map<std::string, std::string> some_of(const std::map<std::string, std::string>& all) {
  constexpr int64_t most = 2000;
  const auto count = std::min<int64_t>(most, static_cast<int64_t>(all.size()));
  return {all.begin(), std::next(all.begin(), count)};
}

// Of a model in shards the tensors' bytes: its path is that of the index.
uint64_t bytes_of(const TensorFile& file) {
  if (!file.path().string().ends_with(".index.json")) return fs::file_size(file.path());
  uint64_t bytes = 0;
  for (const TensorEntry& entry : file.entries()) bytes += static_cast<uint64_t>(entry.bytes());
  return bytes;
}

Json file_json(const TensorFile& file, bool list_tensors) {
  const InspectedFile inspected = inspect_tensors(file);
  Json document = {{"path", file.path().string()},
                   {"format", file.format()},
                   {"kind", inspected.kind},
                   {"bytes", bytes_of(file)},
                   {"tensors", inspected.all.tensors},
                   {"parameters", inspected.all.parameters},
                   {"parts", Json::object()},
                   {"types", inspected.types},
                   {"metadata", some_of(file.metadata())},
                   {"metadata_entries", file.metadata().size()}};
  for (const auto& [name, part] : inspected.parts) {
    document["parts"][name] = {
        {"tensors", part.tensors}, {"parameters", part.parameters}, {"bytes", part.bytes}};
  }
  if (list_tensors) {
    Json list = Json::array();
    for (const TensorEntry& entry : file.entries()) {
      list.push_back({{"name", entry.name},
                      {"type", type_name(entry.type)},
                      {"shape", entry.shape},
                      {"bytes", entry.bytes()}});
    }
    document["list"] = std::move(list);
  }
  return document;
}

std::string file_text(const TensorFile& file, bool list_tensors) {
  constexpr size_t told_metadata = 12;
  const InspectedFile inspected = inspect_tensors(file);
  std::string text = fmt::format("{:<13}{}\n", "file", file.path().string());
  text += fmt::format("{:<13}{}, {}, {}\n", "is", inspected.kind, file.format(),
                      format_bytes(bytes_of(file)));
  std::vector<std::string> types;
  for (const auto& [name, count] : inspected.types)
    types.push_back(fmt::format("{} {}", grouped(count), name));
  text += fmt::format("{:<13}{}{}\n", "tensors", grouped(inspected.all.tensors),
                      types.empty() ? "" : " (" + join(types, ", ") + ")");
  text += fmt::format("{:<13}{}\n", "parameters", grouped(inspected.all.parameters));
  if (inspected.parts.size() > 1) {
    for (const auto& [name, part] : inspected.parts) {
      text += fmt::format("  {:<17}{:>13}  {:>10}  {} {}\n", name, grouped(part.parameters),
                          format_bytes(static_cast<uint64_t>(part.bytes)), grouped(part.tensors),
                          part.tensors == 1 ? "tensor" : "tensors");
    }
  }
  size_t told = 0;
  for (const auto& [key, value] : file.metadata()) {
    if (told++ == told_metadata) {
      text += fmt::format("{:<13}and {} more (--json lists all)\n", "",
                          file.metadata().size() - told_metadata);
      break;
    }
    text += fmt::format("{:<13}{} = {}\n", told == 1 ? "metadata" : "", for_terminal(key),
                        for_terminal(value, 80));
  }
  if (!list_tensors) return text;
  size_t widest = 0;
  for (const TensorEntry& entry : file.entries()) widest = std::max(widest, entry.name.size());
  for (const TensorEntry& entry : file.entries()) {
    text +=
        fmt::format("{:<{}}  {:<9} {}\n", for_terminal(entry.name, 1000),
                    std::min<size_t>(widest, 80), type_name(entry.type), shape_text(entry.shape));
  }
  return text;
}

Json folder_json(const XttsFolder& folder, bool list_tensors) {
  const XttsConfig& config = folder.config;
  Json document = {{"path", folder.path.string()},
                   {"kind", config.gpt.perceiver ? "XTTS v2 folder" : "XTTS v1 folder"},
                   {"gpt",
                    {{"layers", config.gpt.layers},
                     {"width", config.gpt.width},
                     {"heads", config.gpt.heads},
                     {"text_tokens", config.gpt.text_tokens},
                     {"audio_tokens", config.gpt.audio_tokens},
                     {"max_text_tokens", config.gpt.max_text_tokens},
                     {"max_audio_tokens", config.gpt.max_audio_tokens}}},
                   {"languages", config.languages},
                   {"sampling",
                    {{"temperature", config.sampling.temperature},
                     {"length_penalty", config.sampling.length_penalty},
                     {"repetition_penalty", config.sampling.repetition_penalty},
                     {"top_k", config.sampling.top_k},
                     {"top_p", config.sampling.top_p}}},
                   {"input_sample_rate", config.input_rate},
                   {"output_sample_rate", config.output_rate},
                   {"vocabulary", folder.vocabulary_file.string()},
                   {"files", Json::array()}};
  for (const fs::path& path :
       {folder.weights_file, folder.dvae_file, folder.speakers_file, folder.mel_stats_file}) {
    if (!path.empty())
      document["files"].push_back(file_json(*open_tensor_file(path), list_tensors));
  }
  return document;
}

std::string folder_text(const XttsFolder& folder, bool list_tensors) {
  const XttsConfig& config = folder.config;
  const XttsGptSize& gpt = config.gpt;
  std::string text = fmt::format("{:<13}{}\n", "folder", folder.path.string());
  text += fmt::format("{:<13}XTTS {}: {} layers, width {}, {} heads, {} text and {} audio tokens\n",
                      "is", gpt.perceiver ? "v2" : "v1", gpt.layers, gpt.width, gpt.heads,
                      gpt.text_tokens, gpt.audio_tokens);
  text += fmt::format("{:<13}{}\n", "languages", for_terminal(join(config.languages, " ")));
  text += fmt::format(
      "{:<13}temperature {}, repetition_penalty {}, top_k {}, top_p {}, length_penalty {}\n",
      "sampling", config.sampling.temperature, config.sampling.repetition_penalty,
      config.sampling.top_k, config.sampling.top_p, config.sampling.length_penalty);
  text +=
      fmt::format("{:<13}{} Hz in, {} Hz out\n", "sound", config.input_rate, config.output_rate);
  text += fmt::format("{:<13}{}\n", "vocabulary", folder.vocabulary_file.string());
  for (const fs::path& path :
       {folder.weights_file, folder.dvae_file, folder.speakers_file, folder.mel_stats_file}) {
    if (!path.empty()) text += "\n" + file_text(*open_tensor_file(path), list_tensors);
  }
  return text;
}

// A run's folder stands for its latest checkpoint.
fs::path resolved(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored) || fs::exists(path / "config.json", ignored)) return path;
  for (const char* inner : {"latest/model.safetensors", "model.safetensors"}) {
    if (fs::is_regular_file(path / inner, ignored)) return path / inner;
  }
  return path;
}

int run_inspect(const Arguments& arguments) {
  if (arguments.rest.size() != 1) {
    throw Error(ErrorKind::usage, "expected one file or folder to look at")
        .hint("tandem inspect FILE|DIR");
  }
  const fs::path path = resolved(arguments.rest[0]);
  const bool list = arguments.has("--tensors"), json = arguments.has("--json");
  std::error_code ignored;
  Json document;
  std::string text;
  if (MusicgenFolder::looks_like(path)) {
    const MusicgenFolder folder = MusicgenFolder::open(path);
    const auto file = folder.open_weights();
    if (json) {
      document = musicgen_json(folder);
      document["files"].push_back(file_json(*file, list));
    } else {
      text = musicgen_text(folder) + "\n" + file_text(*file, list);
    }
  } else if (fs::is_directory(path, ignored)) {
    const XttsFolder folder = XttsFolder::open(path);
    json ? void(document = folder_json(folder, list)) : void(text = folder_text(folder, list));
  } else {
    const auto file = open_tensor_file(path);
    json ? void(document = file_json(*file, list)) : void(text = file_text(*file, list));
  }
  // Names in files may be no UTF-8.
  if (json) text = document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  print(text.substr(0, text.size() - 1));
  return 0;
}

}  // namespace

Command inspect_command() {
  return {.name = "inspect",
          .summary = "what a model's file or folder holds, without loading it",
          .rest = "FILE|DIR",
          .details =
              "Tensors, parameters by part, element types, metadata; of an XTTS or MusicGen "
              "folder\nalso its sizes and sampling. Nothing in a file is ever executed.\n\n"
              "  tandem inspect XTTS-v2\n"
              "  tandem inspect musicgen-small\n"
              "  tandem inspect best_model.pth --tensors",
          .settings = 0,
          .chooses_devices = false,
          .options = {{"--tensors", "", "list every tensor with its type and shape"},
                      {"--json", "", "one JSON document"}},
          .run = run_inspect};
}

}  // namespace tandem
