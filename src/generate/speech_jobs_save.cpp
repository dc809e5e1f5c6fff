#include <ATen/ATen.h>
#include <fmt/format.h>

#include "checkpoint/safetensors.h"
#include "generate/speech_jobs.h"
#include "util/atomic_file.h"

namespace tandem {
namespace {

Metadata texts_of(const Speech& speech) {
  Metadata metadata = {{"sample_rate", std::to_string(speech.sample_rate)}};
  for (size_t i = 0; i < speech.pieces.size(); ++i) {
    const SpeechPiece& piece = speech.pieces[i];
    metadata[fmt::format("text.{}", i)] = piece.text;
    metadata[fmt::format("normalised.{}", i)] = piece.normalised;
    metadata[fmt::format("seed.{}", i)] = std::to_string(piece.seed);
    metadata[fmt::format("end.{}", i)] = piece.end;
  }
  return metadata;
}

at::Tensor numbers(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }

}  // namespace

void save_codes(const std::string& path, const Speech& speech) {
  NamedTensors tensors;
  for (size_t i = 0; i < speech.pieces.size(); ++i) {
    tensors.emplace_back(fmt::format("codes.{}", i), numbers(speech.pieces[i].codes));
    tensors.emplace_back(fmt::format("text_ids.{}", i), numbers(speech.pieces[i].text_ids));
  }
  write_file_atomically(path, format_safetensors(tensors, texts_of(speech)));
}

void save_latents(const std::string& path, const Speech& speech) {
  NamedTensors tensors;
  for (size_t i = 0; i < speech.pieces.size(); ++i) {
    const SpeechPiece& piece = speech.pieces[i];
    if (piece.latents.empty()) continue;
    const auto rows = static_cast<int64_t>(piece.latent_rows);
    tensors.emplace_back(fmt::format("latents.{}", i),
                         at::tensor(piece.latents, at::kFloat).reshape({rows, -1}));
  }
  write_file_atomically(path, format_safetensors(tensors, texts_of(speech)));
}

}  // namespace tandem
