#include "cli/generate_recipe.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "observe/crc32c.h"
#include "tandem/error.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

// Of blocks spread over a file, which may have ten gigabytes: other weights differ everywhere.
uint32_t sampled_checksum(const fs::path& path, uint32_t so_far) {
  constexpr uint64_t blocks = 64, block = 1 << 16;
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  if (!file || error) throw Error(ErrorKind::io, fmt::format("cannot read `{}`", path.string()));
  std::string bytes = fmt::format("{} {} ", so_far, size);
  std::string part(block, '\0');
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t start = size > block ? (size - block) / (blocks - 1) * i : 0;
    file.clear();
    file.seekg(static_cast<std::streamoff>(start));
    file.read(part.data(), static_cast<std::streamsize>(block));
    bytes.append(part, 0, static_cast<size_t>(file.gcount()));
    if (size <= block) break;
  }
  return crc32c(bytes);
}

}  // namespace

std::string model_recipe(const GenerateRequest& request, const GeneratePlan& plan) {
  uint32_t sum = sampled_checksum(plan.model.path / "config.json", 0);
  sum = sampled_checksum(plan.model.tokenizer_file, sum);
  for (const fs::path& file : plan.model.weights_files) sum = sampled_checksum(file, sum);
  return fmt::format("{} {:08x} {}{} captions of {} ids at most", request.model_name, sum,
                     plan.engine.precision, plan.engine.cache == "int8" ? " kv int8" : "",
                     request.config.data.max_sequence_length);
}

nlohmann::json run_recipe(const GenerateRequest& request, const GeneratePlan& plan) {
  const DataConfig& data = request.config.data;
  const GenerationConfig& settings = request.config.generation;
  const MusicSampling& sampling = plan.music.sampling;
  nlohmann::json recipe = {{"model", model_recipe(request, plan)},
                           {"new_tokens", plan.music.new_tokens},
                           {"window_tokens", plan.music.window_tokens},
                           {"kept_tokens", plan.music.kept_tokens},
                           {"greedy", sampling.greedy},
                           {"temperature", sampling.temperature},
                           {"top_k", sampling.top_k},
                           {"top_p", sampling.top_p},
                           {"guidance_scale", sampling.guidance_scale},
                           {"seed", settings.seed},
                           {"format", settings.format}};
  if (!request.audio_prompt.empty())
    recipe["audio_prompt"] = fs::absolute(request.audio_prompt).string();
  if (!request.prompts.empty()) {
    recipe["prompts"] = request.prompts;
    return recipe;
  }
  recipe["captions"] = fs::absolute(*data.captions_file).string();
  recipe["columns"] = {data.id_column, data.text_column, data.audio_prompt_column};
  recipe["subset"] = {data.subset_size, data.subset_seed};
  return recipe;
}

}  // namespace tandem
