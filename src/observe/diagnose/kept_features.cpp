#include "observe/diagnose/kept_features.h"

#include <filesystem>

#include "data/feed/feature_cache.h"
#include "models/xtts/code_cache.h"

namespace tandem {
namespace fs = std::filesystem;

void note_kept_features(Circumstances& now) {
  std::error_code ignored;
  const fs::path data = now.config.data.train_data.value_or("");
  const fs::path index = data.extension() == ".index" ? data : data / "tandem.index";
  now.index = !data.empty() && fs::is_regular_file(index, ignored) ? index.string() : "";
  const bool codes = now.config.training.stage == "gpt";
  now.features_cached =
      !now.index.empty() &&
      fs::exists(codes ? code_cache_path(now.index) : mel_cache_path(now.index), ignored);
  now.dvae_file.clear();
  if (!now.config.model.pretrained) return;
  for (const char* name : {"dvae.pth", "dvae.safetensors"}) {  // the second is read where both are
    const fs::path file = fs::path(*now.config.model.pretrained) / name;
    if (fs::is_regular_file(file, ignored)) now.dvae_file = file.string();
  }
}

}  // namespace tandem
