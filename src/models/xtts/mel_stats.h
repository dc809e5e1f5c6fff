// The 80 numbers XTTS divides its log mels by. They stand in the model's weights, or in a file of
// their own beside them.
#pragma once

#include <ATen/core/TensorBody.h>

#include <filesystem>

namespace tandem {

// mel_stats.safetensors, mel_stats.pth or mel_norms.pth in a folder; empty: none.
std::filesystem::path find_mel_stats(const std::filesystem::path& folder);

// Such a file holds one tensor and nothing else. Throws Error(io) or Error(corrupt).
at::Tensor read_mel_stats(const std::filesystem::path& path);

}  // namespace tandem
