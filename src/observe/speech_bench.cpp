#include "observe/speech_bench.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "generate/speech_decoder.h"
#include "models/xtts/xtts.h"
#include "nn/sample.h"
#include "util/clock.h"

namespace tandem {
namespace {

Xtts model_for_bench(const std::string& size) {
  Xtts model = Xtts::make(xtts_preset(size), 1);
  // Every text has the same length: the stop code is never drawn.
  model.gpt.audio_head.bias[model.gpt.size.stop_audio_token] = -1e6;
  return model;
}

Voice bench_voice(const Xtts& model) {
  const at::Tensor speaker =
      make_parameter(2, "speaker", {model.vocoder.speaker.weight.size(1)}, 1.0);
  return {make_parameter(2, "conditioning", {32, model.gpt.size.width}, 1.0),
          speaker / speaker.norm()};
}

SpeechRequest request_of(const Xtts& model, const Voice& voice, const SpeechBenchOptions& options,
                         uint64_t seed) {
  SpeechRequest request;
  for (int64_t i = 0; i < options.text_tokens; ++i)
    request.text_ids.push_back((static_cast<int64_t>(seed) * 7 + i * 5) %
                               model.gpt.size.text_tokens);
  request.voice = voice;
  request.seed = seed;
  request.max_codes = options.codes;
  return request;
}

double run_batch(SpeechEngine& engine, const Xtts& model, const Voice& voice,
                 const SpeechBenchOptions& options, int64_t requests) {
  const Clock::time_point start = Clock::now();
  std::vector<std::future<SpeechResult>> futures;
  for (int64_t i = 0; i < requests; ++i)
    futures.push_back(
        engine.submit(request_of(model, voice, options, static_cast<uint64_t>(i + 1))));
  for (auto& future : futures) future.get();
  return seconds_since(start);
}

// Bytes a second of a copy on the device, both directions counted.
double measured_bandwidth(LogicalDevice& device) {
  if (device.kind() != DeviceKind::cuda) return 0;
  DeviceScope scope(device);
  const at::Tensor from = at::zeros({1 << 30}, scope.options().dtype(at::kByte));
  at::Tensor to = at::empty_like(from);
  to.copy_(from);
  device.compute_stream().synchronize();
  const Clock::time_point start = Clock::now();
  constexpr int rounds = 20;
  for (int i = 0; i < rounds; ++i) to.copy_(from);
  device.compute_stream().synchronize();
  return rounds * 2.0 * static_cast<double>(from.nbytes()) / seconds_since(start);
}

std::unique_ptr<SpeechDecoder> decoder_for(const Xtts& model, LogicalDevice& device,
                                           const SpeechBenchOptions& options, int64_t places,
                                           const FewRows& few_rows = {}) {
  const bool bf16 = options.precision == SpeechPrecision::bf16;
  return make_cuda_decoder(model.gpt, device, places, bf16 ? "bf16" : "fp16", few_rows);
}
std::vector<DecodeStart> starts_of(const Xtts& model, const Voice& voice,
                                   const SpeechBenchOptions& options, int places) {
  std::vector<DecodeStart> starts;
  for (int place = 0; place < places; ++place) {
    const auto seed = static_cast<uint64_t>(place + 1);
    const SpeechRequest request = request_of(model, voice, options, seed);
    starts.push_back({.place = place,
                      .prompt = model.gpt.prompt(request.text_ids, voice.conditioning).squeeze(0),
                      .sampling = request.sampling,
                      .key = draw_key(seed),
                      .max_codes = options.codes});
  }
  return starts;
}
// Steps of all places, as many queued ahead as the decoder likes.
void decode_steps(SpeechDecoder& decoder, int places, int64_t steps) {
  std::vector<int> all(static_cast<size_t>(places));
  std::iota(all.begin(), all.end(), 0);
  for (int64_t i = 0; i < steps; ++i) {
    decoder.step(all);
    if (decoder.queued() > static_cast<size_t>(decoder.most_queued())) decoder.collect();
  }
  while (decoder.queued() > 0) decoder.collect();
}
// Seconds a step of one text.
double step_seconds(const Xtts& model, LogicalDevice& device, const Voice& voice,
                    const SpeechBenchOptions& options, const FewRows& few_rows) {
  const auto decoder = decoder_for(model, device, options, 1, few_rows);
  decoder->start(starts_of(model, voice, options, 1));
  decode_steps(*decoder, 1, 1);
  const Clock::time_point start = Clock::now();
  const int64_t steps = options.codes - 4;
  decode_steps(*decoder, 1, steps);
  return seconds_since(start) / static_cast<double>(steps);
}
// Codes a second of the GPT alone, prompts included: what a peer without a vocoder is held against.
double gpt_rate(const Xtts& model, LogicalDevice& device, const Voice& voice,
                const SpeechBenchOptions& options, int64_t batch) {
  const auto places = static_cast<int>(batch);
  const std::vector<DecodeStart> starts = starts_of(model, voice, options, places);
  const auto decoder = decoder_for(model, device, options, batch);
  double seconds = 0;
  for (int round = 0; round < 2; ++round) {  // the first captures
    const Clock::time_point start = Clock::now();
    decoder->start(starts);
    decode_steps(*decoder, places, options.codes - 1);
    seconds = seconds_since(start);
  }
  return static_cast<double>(batch * options.codes) / seconds;
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

}  // namespace

SpeechBench bench_speech(LogicalDevice& device, const SpeechBenchOptions& options) {
  at::NoGradGuard no_gradients;
  const Xtts model = model_for_bench(options.model_size);
  const Voice voice = bench_voice(model);
  SpeechBench bench;
  bench.device = device.info().hardware;
  bench.code_seconds = static_cast<double>(model.config.code_stride) / model.config.input_rate;
  for (const XttsGptBlock& block : model.gpt.blocks)
    bench.weight_bytes +=
        static_cast<double>(block.qkv_weight.numel() + block.project_weight.numel() +
                            block.expand_weight.numel() + block.contract_weight.numel());
  bench.weight_bytes += static_cast<double>(model.gpt.audio_head.weight.numel());
  const bool half = device.kind() == DeviceKind::cuda &&
                    options.precision != SpeechPrecision::fp32 &&
                    options.precision != SpeechPrecision::tf32;
  bench.weight_bytes *= half ? 2 : 4;
  bench.precision = !half ? "fp32" : options.precision == SpeechPrecision::bf16 ? "bf16" : "fp16";
  bench.bandwidth = measured_bandwidth(device);
  if (half) {
    bench.paths = measure_step_paths([&](const FewRows& few_rows) {
      return step_seconds(model, device, voice, options, few_rows);
    });
    bench.one_step = bench.paths.back().seconds;
  }

  const auto rate = [&](int64_t batch, double seconds, int64_t requests) {
    const double codes = static_cast<double>(requests * options.codes);
    return BatchRate{batch, codes / seconds, codes * bench.code_seconds / seconds, 0,
                     static_cast<double>(device.memory().peak())};
  };
  {
    SpeechEngine engine(model, device, {.places = 1, .precision = options.precision});
    run_batch(engine, model, voice, options, 1);
    bench.one = rate(1, run_batch(engine, model, voice, options, 5), 5);
    std::vector<double> firsts;
    for (int64_t i = 0; i < options.first_sounds; ++i) {
      SpeechRequest request = request_of(model, voice, options, static_cast<uint64_t>(100 + i));
      request.max_codes = std::min<int64_t>(30, options.codes);
      request.on_sound = [](std::span<const float>) {};
      firsts.push_back(engine.submit(std::move(request)).get().first_sound_seconds);
    }
    if (!firsts.empty()) {
      bench.first_sound_p50 = quantile(firsts, 0.5);
      bench.first_sound_p95 = quantile(firsts, 0.95);
    }
  }
  for (const int64_t batch : options.batches) {
    SpeechEngine engine(model, device, {.places = batch, .precision = options.precision});
    // On a GPU until every graph and buffer is there.
    const bool captures = device.kind() == DeviceKind::cuda;
    run_batch(engine, model, voice, options, captures ? batch : std::min<int64_t>(batch, 4));
    const int64_t requests = batch * 3;
    bench.many.push_back(rate(batch, run_batch(engine, model, voice, options, requests), requests));
  }
  if (half) {  // when the engines have given their memory back
    bench.one.gpt_codes_per_second = gpt_rate(model, device, voice, options, 1);
    for (BatchRate& many : bench.many)
      many.gpt_codes_per_second = gpt_rate(model, device, voice, options, many.batch);
  }
  return bench;
}

}  // namespace tandem
