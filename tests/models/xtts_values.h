// Weights and inputs that tests and tests/parity/make_xtts_fixtures.py both compute from their
// names, so that fixtures hold results only.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "audio/file/write_audio.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/weights.h"
#include "models/xtts/xtts_parameters.h"
#include "util/counted_random.h"

namespace tandem::tests {

inline uint64_t word(const std::string& name, int64_t i) {
  return mix_bits(hash_text(name) + static_cast<uint64_t>(i));
}

inline int64_t elements(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

// Evenly spread over mean - scale .. mean + scale.
inline at::Tensor values(const std::string& name, const Shape& shape, double scale = 1,
                         double mean = 0) {
  at::Tensor out = at::empty(shape, at::kFloat);
  for (int64_t i = 0; i < out.numel(); ++i) {
    const double unit = static_cast<double>(word(name, i) >> 40) * 0x1p-23 - 1.0;
    out.data_ptr<float>()[i] = static_cast<float>(mean + scale * unit);
  }
  return out;
}

inline at::Tensor whole_numbers(const std::string& name, const Shape& shape, uint64_t bound) {
  at::Tensor out = at::empty(shape, at::kLong);
  for (int64_t i = 0; i < out.numel(); ++i)
    out.data_ptr<int64_t>()[i] = static_cast<int64_t>((word(name, i) >> 32) % bound);
  return out;
}

inline std::vector<int64_t> numbers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kLong).contiguous().view({-1});
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

inline at::Tensor weight(const std::string& name, const Shape& shape) {
  if (name.ends_with("running_var")) return values(name, shape, 0.5, 1);
  if (name.ends_with("codebook.embed")) return values(name, shape);
  if (name.find("embedding") != std::string::npos || name.ends_with("latents"))
    return values(name, shape, 0.5);
  if (shape.size() > 1) {
    const int64_t inputs = elements({shape.begin() + 1, shape.end()});
    return values(name, shape, 1.7 / std::sqrt(static_cast<double>(inputs)));
  }
  if (name.ends_with(".weight") || name.ends_with("gamma")) return values(name, shape, 0.2, 1);
  return values(name, shape, 0.1);
}

using NamedWeights = std::map<std::string, at::Tensor>;

// Collects the tensors of anything with `list`, under the names of files.
inline ListTensor into(NamedWeights& weights) {
  return [&weights](const std::string& name, at::Tensor&, const Shape& shape, const TensorStart&) {
    weights[name] = weight(name, shape);
  };
}

inline NamedWeights xtts_fixture(const std::string& name) {
  return read_safetensors(TANDEM_SOURCE_DIR "/tests/models/xtts/fixtures/" + name + ".safetensors")
      .tensors;
}

// Smoothed noise in whole numbers, as a wave file of 16 bits.
inline void write_clip(const std::string& path, const std::string& name, int64_t frames,
                       int channels, int rate) {
  std::vector<float> samples;
  for (int64_t i = 0; i < frames; ++i) {
    for (int c = 0; c < channels; ++c) {
      int64_t sum = 0;
      for (int64_t j = 0; j < 8; ++j)
        sum += static_cast<int64_t>(word(name, (i + j) * channels + c) >> 52) - 2048;
      samples.push_back(static_cast<float>(sum) / 32768.0f);
    }
  }
  write_wav(path, samples, channels, rate, SampleFormat::float32);
}

inline double decibels(const at::Tensor& ours, const at::Tensor& expected) {
  const at::Tensor truth = expected.to(at::kDouble).view({-1});
  const double noise = (ours.to(at::kDouble).reshape({-1}) - truth).pow(2).sum().item<double>();
  return noise == 0 ? 1e9 : 10 * std::log10(truth.pow(2).sum().item<double>() / noise);
}

}  // namespace tandem::tests
