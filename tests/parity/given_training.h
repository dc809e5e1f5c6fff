// Steps of GPT training on given batches: by themselves on the CPU in float32 (train_tool.cpp), and
// on a GPU in bf16 (tests/gpu/parity_test.cpp).
#pragma once

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/safetensors.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "models/xtts/xtts.h"
#include "tandem/config.h"
#include "train/batches/gpt_batches.h"
#include "train/replica.h"
#include "train/stages/gpt_learner.h"

namespace tandem {

struct GivenTraining {
  std::string model, batches;  // a folder; N/text, N/text_lengths, N/codes, N/code_lengths, N/mels
  int64_t steps = 200;
  double learning_rate = 3e-5;
  std::string precision = "fp32";
};

inline Batch read_batch(const std::map<std::string, at::Tensor>& tensors, int number,
                        const at::Device& device) {
  const auto take = [&](const char* name) {
    return tensors.at(fmt::format("{}/{}", number, name)).to(device);
  };
  Batch batch;
  batch.fields.resize(gpt_fields);
  batch.fields[gpt_text] = take("text");
  batch.fields[gpt_text_lengths] = take("text_lengths");
  batch.fields[gpt_codes] = take("codes");
  batch.fields[gpt_code_lengths] = take("code_lengths");
  batch.fields[gpt_conditioning] = take("mels");
  const int64_t rows = batch.fields[gpt_text].size(0);
  const at::TensorOptions whole = at::TensorOptions(device).dtype(at::kLong);
  batch.fields[gpt_conditioning_lengths] =
      at::full({rows}, batch.fields[gpt_conditioning].size(2), whole);
  batch.fields[gpt_slice] = at::zeros({rows, 2}, whole);
  const at::Tensor words = tensors.at(fmt::format("{}/text_lengths", number)),
                   codes = tensors.at(fmt::format("{}/code_lengths", number));
  const at::Tensor counts = at::stack({(words + 1).sum(), (codes + stop_targets).sum()});
  batch.fields[gpt_whole] = counts.to(at::kFloat).unsqueeze(0).repeat({rows, 1}).to(device);
  batch.rows = batch.whole_rows = rows;
  for (int64_t i = 0; i < rows; ++i) {
    batch.sizes.push_back(words[i].item<int64_t>() + 2 + codes[i].item<int64_t>() + stop_targets +
                          1);
  }
  return batch;
}

// Text and audio loss of each step; the batches are used in turn. Without dropout, clipping or
// schedule.
inline std::vector<std::pair<double, double>> train_as_given(const GivenTraining& given,
                                                             LogicalDevice& device) {
  const std::map<std::string, at::Tensor> tensors = read_safetensors(given.batches).tensors;
  std::vector<Batch> batches;
  GptLargest largest;
  while (tensors.contains(fmt::format("{}/text", batches.size()))) {
    batches.push_back(read_batch(tensors, static_cast<int>(batches.size()), device.torch_device()));
    const auto& fields = batches.back().fields;
    largest.rows = std::max(largest.rows, fields[gpt_text].size(0));
    largest.text = std::max(largest.text, fields[gpt_text].size(1));
    largest.codes = std::max(largest.codes, fields[gpt_codes].size(1));
  }
  TrainingConfig config;
  config.precision = given.precision;
  config.compat = "coqui";
  config.dropout = 0;
  config.gradient_clip = 0;
  config.spike_factor = 0;
  DeviceScope scope(device);
  const Xtts model = Xtts::load(XttsFolder::open(given.model));
  Replica replica(
      device, std::make_unique<GptLearner>(model.gpt, model.conditioning, config, device, largest),
      config, nullptr);
  std::vector<std::pair<double, double>> losses;
  for (int64_t step = 1; step <= given.steps; ++step) {
    const Batch& batch = batches[static_cast<size_t>(step - 1) % batches.size()];
    const at::Tensor terms =
        replica.step({.step = step, .learning_rate = given.learning_rate, .batch = [&](int64_t) {
                        return &batch;
                      }});
    losses.emplace_back(terms[1].item<double>(), terms[2].item<double>());
  }
  return losses;
}

}  // namespace tandem
