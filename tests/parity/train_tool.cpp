// Steps of GPT training on given batches, for tests/parity/compare_training.py. On the CPU in
// float32 with one thread, without dropout, clipping or schedule; or on the first GPU in bf16.
//
//   train_tool FOLDER BATCHES STEPS LEARNING_RATE [bf16]
//
// BATCHES is a safetensors file with N/text, N/text_lengths, N/codes, N/code_lengths, N/mels for
// N = 0, 1, …; they are used in turn. Prints `text_loss mel_loss` of each step.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cstdio>

#include "checkpoint/safetensors.h"
#include "device/device_scope.h"
#include "device/registry.h"
#include "models/xtts/xtts.h"
#include "tandem/config.h"
#include "tandem/devices.h"
#include "tandem/error.h"
#include "train/batches/gpt_batches.h"
#include "train/replica.h"
#include "train/stages/gpt_learner.h"

namespace tandem {
namespace {

Batch read_batch(const std::map<std::string, at::Tensor>& tensors, int number,
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

void run(const std::vector<std::string>& words) {
  if (words.size() < 5) throw Error(ErrorKind::usage, "FOLDER BATCHES STEPS LEARNING_RATE [bf16]");
  const bool gpu = words.size() > 5 && words[5] == "bf16";
  configure_devices({});
  DeviceRegistry& registry = DeviceRegistry::get();
  LogicalDevice& device = gpu ? registry.find("/GPU:0") : registry.cpu();
  const std::map<std::string, at::Tensor> tensors = read_safetensors(words[2]).tensors;
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
  config.precision = gpu ? "bf16" : "fp32";
  config.compat = "coqui";
  config.dropout = 0;
  config.gradient_clip = 0;
  config.spike_factor = 0;
  DeviceScope scope(device);
  const Xtts model = Xtts::load(XttsFolder::open(words[1]));
  Replica replica(
      device, std::make_unique<GptLearner>(model.gpt, model.conditioning, config, device, largest),
      config, nullptr);
  for (int64_t step = 1; step <= std::stoll(words[3]); ++step) {
    const Batch& batch = batches[static_cast<size_t>(step - 1) % batches.size()];
    const at::Tensor terms =
        replica.step({.step = step, .learning_rate = std::stod(words[4]), .batch = [&](int64_t) {
                        return &batch;
                      }});
    std::printf("%.9g %.9g\n", terms[1].item<double>(), terms[2].item<double>());
  }
}

}  // namespace
}  // namespace tandem

int main(int count, char** words) {
  at::set_num_threads(1);
  try {
    tandem::run({words, words + count});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
