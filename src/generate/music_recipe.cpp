#include "generate/music_recipe.h"

#include <fmt/format.h>

#include "generate/clip_writer.h"
#include "util/counted_random.h"

namespace tandem {

uint64_t clip_seed(uint64_t seed, const std::string& name) {
  return counted_draw(seed, "clip", hash_text(name), 0) >> 11;
}

ClipRecipes::ClipRecipes(const MusicJobOptions& options)
    : seed_(options.seed), ending_(ClipFormat{.name = options.format}.ending()) {
  const MusicOptions& music = options.music;
  const MusicSampling& sampling = music.sampling;
  common_ = fmt::format("{}\n{}\n{} {} {} {} {}\n{} {} {} {}", options.recipe, options.format,
                        sampling.greedy, sampling.temperature, sampling.top_p,
                        sampling.guidance_scale, sampling.top_k, music.new_tokens,
                        music.window_tokens, music.kept_tokens, music.longest_text);
}

std::string ClipRecipes::prompt_sum(const std::string& path) {
  {
    std::lock_guard lock(mutex_);
    const auto found = prompt_sums_.find(path);
    if (found != prompt_sums_.end()) return found->second;
  }
  std::string sum = file_checksum(path);
  std::lock_guard lock(mutex_);
  return prompt_sums_.try_emplace(path, std::move(sum)).first->second;
}

ClipEntry ClipRecipes::planned(const Caption& caption) {
  ClipEntry entry;
  entry.id = caption.id;
  entry.text = caption.text;
  entry.file = caption.name + ending_;
  entry.audio_prompt = caption.audio_prompt;
  entry.seed = clip_seed(seed_, caption.name);
  const std::string prompt =
      caption.audio_prompt.empty() ? "none" : "sound " + prompt_sum(caption.audio_prompt);
  const std::string all = fmt::format("{}\n{}\n{}\n{}", common_, entry.seed, prompt, caption.text);
  entry.recipe = fmt::format("{:016x}", hash_text(all));
  return entry;
}

}  // namespace tandem
