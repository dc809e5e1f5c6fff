// What transformers generates with the folders in fixtures/musicgen, and how one pass of ours is
// run to its end. Made by tests/parity/make_musicgen_token_fixtures.py.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "models/musicgen/music_pass.h"
#include "models/musicgen/musicgen.h"

namespace tandem::tests {

inline const SafetensorsFile& musicgen_tokens() {
  static const SafetensorsFile file =
      read_safetensors(TANDEM_SOURCE_DIR "/tests/models/fixtures/musicgen/tokens.safetensors");
  return file;
}
// Whole numbers as int64.
inline at::Tensor generated(const std::string& name) {
  const at::Tensor found = musicgen_tokens().tensors.at(name);
  return found.scalar_type() == at::kInt ? found.to(at::kLong) : found;
}

inline const Musicgen& small_musicgen(const std::string& name) {
  static std::map<std::string, Musicgen> loaded;
  auto place = loaded.find(name);
  if (place == loaded.end()) {
    const std::string folder = TANDEM_SOURCE_DIR "/tests/models/fixtures/musicgen/" + name;
    place = loaded.emplace(name, Musicgen::load(folder)).first;
  }
  return place->second;
}

// Of captions given as ids, each read alone.
inline std::vector<at::Tensor> texts_of(const Musicgen& model,
                                        const std::vector<std::vector<int64_t>>& captions) {
  std::vector<at::Tensor> texts;
  for (const std::vector<int64_t>& ids : captions) {
    const at::Tensor row = at::tensor(ids, at::kLong).unsqueeze(0);
    texts.push_back(model.text(row, at::ones_like(row)).squeeze(0));
  }
  return texts;
}
// Of the fixtures' three captions.
inline std::vector<at::Tensor> fixture_texts(const Musicgen& model, const std::string& name) {
  const at::Tensor ids = generated(name + "/text_ids"), mask = generated(name + "/text_mask");
  std::vector<std::vector<int64_t>> captions;
  for (int64_t clip = 0; clip < ids.size(0); ++clip) {
    const int64_t length = mask[clip].sum().item<int64_t>();
    const auto* own = ids[clip].const_data_ptr<int64_t>();
    captions.emplace_back(own, own + length);
  }
  return texts_of(model, captions);
}

inline void run_out(MusicPass& pass) {
  const at::NoGradGuard no_grad;
  while (!pass.done()) pass.step();
}

}  // namespace tandem::tests
