// The folders of tests/models/fixtures/musicgen and what transformers gives for them.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"

namespace tandem::tests {

inline const std::vector<std::string>& musicgen_fixtures() {
  static const std::vector<std::string> names = {"tiny", "odd", "stereo"};
  return names;
}

inline std::string musicgen_fixture(const std::string& name) {
  return TANDEM_SOURCE_DIR "/tests/models/fixtures/musicgen/" + name;
}

inline std::map<std::string, at::Tensor> musicgen_expected(const std::string& name) {
  return read_safetensors(musicgen_fixture(name) + "_expected.safetensors").tensors;
}

inline double signal_to_noise(const at::Tensor& ours, const at::Tensor& expected) {
  const at::Tensor truth = expected.to(at::kDouble);
  const double noise = (ours.to(at::kDouble) - truth).pow(2).sum().item<double>();
  return noise == 0 ? 1e9 : 10 * std::log10(truth.pow(2).sum().item<double>() / noise);
}

inline double farthest(const at::Tensor& ours, const at::Tensor& expected) {
  return (ours - expected).abs().max().item<double>();
}

}  // namespace tandem::tests
