// Speech on CUDA against the float32 reference on the CPU. Needs a GPU.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "device/device_scope.h"
#include "device/registry.h"
#include "generate/speech_decoder.h"
#include "generate/speech_requests.h"
#include "gpu/in_child.h"
#include "models/xtts/sound_window.h"
#include "models/xtts/xtts.h"
#include "nn/model_parts.h"
#include "nn/rows/row_prefix.h"
#include "support/temporary_folder.h"
#include "util/atomic_file.h"

namespace tandem {
namespace {

LogicalDevice& first_gpu() {
  configure_devices({});
  return *DeviceRegistry::get().gpus().front();
}

double snr(const at::Tensor& ours, const at::Tensor& reference) {
  const double noise = (ours - reference).pow(2).sum().item<double>();
  return 10 * std::log10(reference.pow(2).sum().item<double>() / std::max(noise, 1e-30));
}

// The CPU, which is the reference, is to be done in time.
XttsConfig narrow_config() {
  XttsConfig config = xtts_preset("small");
  config.gpt.layers = 6;
  config.gpt.width = 256;
  return config;
}

XttsConfig odd_config() {
  XttsConfig config = narrow_config();
  config.gpt.layers = 3;
  config.gpt.heads = 5;
  config.gpt.width = 280;
  return config;
}

XttsConfig wide_heads_config() {
  XttsConfig config = narrow_config();
  config.gpt.layers = 2;
  config.gpt.heads = 2;  // of 128
  return config;
}

// The texts of one start, decoded by all the decoders the same?
void expect_the_same(const std::vector<DecodedText>& ours, const std::vector<DecodedText>& others,
                     const std::string& what) {
  ASSERT_EQ(ours.size(), others.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].codes, others[i].codes) << what << ", text " << i;
    EXPECT_TRUE(at::equal(ours[i].latents, others[i].latents)) << what << ", text " << i;
  }
}

}  // namespace

TEST(GpuSpeech, LatentsOfHalfPrecisionAreNearTheReference) {
  IN_CHILD({
    LogicalDevice& device = first_gpu();
    for (const XttsConfig& config : {narrow_config(), odd_config(), xtts_preset("tiny")}) {
      const Xtts model = lively_model(config);
      const auto most = std::min<int64_t>(40, model.gpt.size.max_new_codes());
      for (const auto precision : {SpeechPrecision::fp16, SpeechPrecision::bf16}) {
        const SpeechRequest request = a_request(model, 0, most);
        const SpeechResult result = speak(model, device, 4, 1, most, precision).front();
        const at::Tensor reference =
            model.gpt.latents(request.text_ids, result.codes, request.voice.conditioning)
                .squeeze(0);
        EXPECT_GT(snr(result.latents, reference), precision == SpeechPrecision::fp16 ? 50 : 33);
      }
    }
  });
}

TEST(GpuSpeech, HalfPrecisionLossesOfXttsV2AreNearFloat32) {
  IN_CHILD({
    LogicalDevice& device = first_gpu();
    at::NoGradGuard no_gradients;
    XttsGpt gpt = XttsGpt::make(xtts_preset("normal").gpt, 1);
    const at::Tensor text = at::randint(3, 6000, {2, 60}, at::kLong);
    const at::Tensor codes = at::randint(0, 1024, {2, 150}, at::kLong);
    const at::Tensor text_lengths = at::tensor({60, 41}, at::kLong);
    const at::Tensor wave_lengths = at::tensor({150 * 1024, 97 * 1024 + 5}, at::kLong);
    const at::Tensor conditioning = at::randn({2, 32, 1024});
    DeviceScope scope(device);
    at::globalContext().setAllowTF32CuBLAS(false);
    std::map<at::ScalarType, std::pair<double, double>> losses;
    for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
      XttsGpt moved = gpt;
      move_to(moved, "", at::TensorOptions(device.torch_device()).dtype(type));
      const auto forced = moved.teacher_forced(text, text_lengths, codes, wave_lengths,
                                               conditioning.to(device.torch_device()));
      losses[type] = {forced.loss_text.item<double>(), forced.loss_audio.item<double>()};
      std::printf("%s: text %.6f, audio %.6f\n", at::toString(type), losses[type].first,
                  losses[type].second);
    }
    for (const auto type : {at::kBFloat16, at::kHalf}) {
      EXPECT_NEAR(losses[type].first, losses[at::kFloat].first, 1e-2);
      EXPECT_NEAR(losses[type].second, losses[at::kFloat].second, 1e-2);
    }
  });
}

TEST(GpuSpeech, SaysTheSameOnOneTwoAndFourShares) {
  std::vector<std::string> heard;
  for (const int shares : {1, 2, 4}) {
    TestFolder folder;
    EXPECT_TRUE(in_child([&] {
      configure_devices(shares == 1 ? DeviceRequest{} : split(shares));
      const Xtts model = lively_model(narrow_config());
      std::vector<std::unique_ptr<SpeechEngine>> engines;
      for (const auto& gpu : DeviceRegistry::get().gpus())
        engines.push_back(std::make_unique<SpeechEngine>(model, *gpu));
      std::vector<std::future<SpeechResult>> futures;
      for (int i = 0; i < 12; ++i)
        futures.push_back(
            engines[static_cast<size_t>(i) % engines.size()]->submit(a_request(model, i, 30)));
      std::string bytes;
      for (auto& future : futures) {
        const std::vector<float> samples = future.get().samples;
        bytes.append(reinterpret_cast<const char*>(samples.data()), samples.size() * sizeof(float));
      }
      folder.write("sound", bytes);
    }));
    heard.push_back(read_file(folder / "sound"));
  }
  EXPECT_FALSE(heard[0].empty());
  EXPECT_TRUE(heard[0] == heard[1]);
  EXPECT_TRUE(heard[0] == heard[2]);
}

TEST(GpuSpeech, SaysTheSameInEveryBatch) {
  IN_CHILD({
    LogicalDevice& device = first_gpu();
    for (const XttsConfig& config : {narrow_config(), odd_config()}) {
      const Xtts model = lively_model(config);
      const auto alone = speak(model, device, 1, 40, 30, SpeechPrecision::fp16);
      const auto near_reference = [&](const SpeechResult& result, int number) {
        const at::Tensor reference =
            model
                .vocoder(result.latents.unsqueeze(0),
                         a_voice(model, static_cast<uint64_t>(number % 3)).speaker.unsqueeze(0))
                .squeeze(0);
        std::vector<float> samples = result.samples;
        return snr(at::from_blob(samples.data(), {static_cast<int64_t>(samples.size())}),
                   reference);
      };
      EXPECT_GT(near_reference(alone[4], 4), 45);
      for (const int64_t places : {7, 32, 80}) {
        const auto together = speak(model, device, places, 40, 30, SpeechPrecision::fp16);
        for (size_t i = 0; i < alone.size(); ++i) {
          EXPECT_TRUE(at::equal(alone[i].latents, together[i].latents))
              << places << " places, request " << i;
          EXPECT_EQ(alone[i].codes, together[i].codes) << places << " places, request " << i;
          EXPECT_GT(near_reference(together[i], static_cast<int>(i)), 45);
          EXPECT_TRUE(alone[i].samples == together[i].samples)
              << places << " places, request " << i;
        }
      }
    }
  });
}

TEST(GpuSpeech, PrefixesAreCopiedBetweenPlacesAndSlots) {
  IN_CHILD({
    LogicalDevice& device = first_gpu();
    DeviceScope scope(device);
    constexpr int64_t layers = 3, places = 5, heads = 3, capacity = 41, positions = 32, slots = 4;
    for (const int64_t pad : {64, 128}) {
      const auto halves = scope.options().dtype(at::kHalf);
      std::vector<at::Tensor> caches;
      std::vector<int64_t> addresses;
      for (int64_t i = 0; i < 2 * layers; ++i) {
        caches.push_back(at::randn({places, heads, capacity, pad}, halves));
        addresses.push_back(reinterpret_cast<int64_t>(caches.back().const_data_ptr()));
      }
      const at::Tensor table = at::tensor(addresses, at::kLong).to(device.torch_device());
      const at::Tensor kept = at::zeros({slots, 2 * layers, heads, positions, pad}, halves);
      const auto copy = [&](const std::vector<int32_t>& from, const std::vector<int32_t>& to,
                            PrefixWay way) {
        const bool to_slots = way == PrefixWay::to_slots;
        const at::Tensor place =
            at::tensor(to_slots ? from : to, at::kInt).to(device.torch_device());
        const at::Tensor slot =
            at::tensor(to_slots ? to : from, at::kInt).to(device.torch_device());
        launch_row_prefix({.copies = static_cast<int>(from.size()),
                           .caches = 2 * layers,
                           .heads = heads,
                           .pad = static_cast<int>(pad),
                           .capacity = capacity,
                           .positions = positions,
                           .cache = table.const_data_ptr<int64_t>(),
                           .kept = kept.mutable_data_ptr(),
                           .place = place.const_data_ptr<int32_t>(),
                           .slot = slot.const_data_ptr<int32_t>(),
                           .way = way},
                          c10::cuda::getCurrentCUDAStream());
      };
      std::vector<at::Tensor> before;
      for (const at::Tensor& cache : caches) before.push_back(cache.clone());
      copy({4, 1}, {0, 3}, PrefixWay::to_slots);
      copy({3, 0, 3}, {0, 2, 3}, PrefixWay::to_places);
      EXPECT_TRUE(at::equal(kept[1], at::zeros_like(kept[1])));
      for (size_t i = 0; i < caches.size(); ++i) {
        at::Tensor expected = before[i].clone();
        const int64_t pairs[3][2] = {{1, 0}, {4, 2}, {1, 3}};  // from place, to place
        for (const auto& [from, to] : pairs)
          expected[to].narrow(1, 0, positions).copy_(before[i][from].narrow(1, 0, positions));
        EXPECT_TRUE(at::equal(caches[i], expected)) << pad << ", cache " << i;
        EXPECT_TRUE(
            at::equal(kept[0][static_cast<int64_t>(i)], before[i][4].narrow(1, 0, positions)));
      }
    }
  });
}

TEST(GpuSpeech, DecodesTheSameWithKeptVoices) {
  IN_CHILD({
    LogicalDevice& device = first_gpu();
    constexpr int voices = 5;
    constexpr int64_t codes = 12;
    for (const XttsConfig& config : {narrow_config(), odd_config(), wide_heads_config()}) {
      const Xtts model = lively_model(config);
      for (const std::string half : {"fp16", "bf16"}) {
        for (const int texts : {1, 7, 32}) {
          const auto none = make_cuda_decoder(model.gpt, device, texts, half, {}, 0);
          for (const int64_t kept : {2, 8}) {
            const auto decoder = make_cuda_decoder(model.gpt, device, texts, half, {}, kept);
            for (const int first : {0, 1, 0, 6}) {  // cold, then at other places, then warm
              const uint64_t ours = decoder->prompt_rows(), whole = none->prompt_rows();
              expect_the_same(
                  decode_texts(*decoder, device, model, first, texts, voices, codes),
                  decode_texts(*none, device, model, first, texts, voices, codes),
                  fmt::format("{} kept, {} texts from {}, {}", kept, texts, first, half));
              const uint64_t saved =
                  (none->prompt_rows() - whole) - (decoder->prompt_rows() - ours);
              EXPECT_LE(saved, 32u * static_cast<unsigned>(texts));
              if (kept == 8 && first == 6 && texts > 5) {
                EXPECT_EQ(saved, 32u * static_cast<unsigned>(texts));
              }
            }
          }
        }
      }
    }
  });
}

TEST(GpuSpeech, SaysTheSameWithKeptVoicesInEveryBatch) {
  IN_CHILD({
    LogicalDevice& device = first_gpu();
    const Xtts model = lively_model(narrow_config());
    const auto reference = speak(model, device, 1, 40, 30, SpeechPrecision::fp16, 0);
    for (const int64_t places : {1, 7, 32}) {
      for (const int64_t kept : {0, 1, 2, -1}) {  // of three voices
        const auto ours = speak(model, device, places, 40, 30, SpeechPrecision::fp16, kept);
        for (size_t i = 0; i < ours.size(); ++i) {
          EXPECT_EQ(reference[i].codes, ours[i].codes) << places << ", " << kept << ", " << i;
          EXPECT_TRUE(at::equal(reference[i].latents, ours[i].latents))
              << places << ", " << kept << ", " << i;
          EXPECT_TRUE(reference[i].samples == ours[i].samples)
              << places << ", " << kept << ", " << i;
        }
      }
    }
  });
}

TEST(GpuSpeech, StartsAnyNumberOfLongTexts) {
  IN_CHILD({
    LogicalDevice& device = first_gpu();
    const Xtts model = lively_model(narrow_config());
    constexpr int texts = 256;
    const auto start_of = [&](int place, int number) {
      std::vector<int64_t> ids;
      for (int i = 0; i < 300; ++i) ids.push_back((7 * number + 3 * i) % 6000);
      const Voice voice = a_voice(model, 1);
      return DecodeStart{.place = place,
                         .prompt = model.gpt.prompt(ids, voice.conditioning).squeeze(0),
                         .key = draw_key(static_cast<uint64_t>(number)),
                         .max_codes = 5,
                         .voice_rows = 32};
    };
    std::vector<DecodeStart> starts;
    for (int i = 0; i < texts; ++i) starts.push_back(start_of(i, i));
    const auto decoder = make_cuda_decoder(model.gpt, device, texts, "fp16");
    decoder->start(starts);
    EXPECT_GT(decoder->queued(), 16u);
    std::vector<std::vector<int64_t>> drawn(texts);
    while (decoder->queued() > 0)
      for (const DrawnCode& code : decoder->collect())
        drawn[static_cast<size_t>(code.place)].push_back(code.code);
    const auto alone = make_cuda_decoder(model.gpt, device, 1, "fp16", {}, 0);
    for (const int i : {0, 1, 100, 255}) {
      alone->start({start_of(0, i)});
      const std::vector<DrawnCode> code = alone->collect();
      ASSERT_EQ(code.size(), 1u);
      EXPECT_EQ(drawn[static_cast<size_t>(i)], std::vector<int64_t>{code[0].code}) << i;
    }
    for (const auto& codes : drawn) EXPECT_EQ(codes.size(), 1u);
  });
}

TEST(GpuSpeech, TakesNoStepsBehindTheLastCode) {
  IN_CHILD({
    LogicalDevice& device = first_gpu();
    const Xtts model = lively_model(xtts_preset("tiny"));
    SpeechEngine engine(model, device, {.places = 3});
    for (uint64_t texts = 1; texts <= 3; ++texts) {
      EXPECT_EQ(engine.submit(a_request(model, 0, 20)).get().codes.size(), 20u);
      // The engine counts behind its answer.
      while (engine.counters().codes < 20 * texts) std::this_thread::yield();
      EXPECT_EQ(engine.counters().steps, 19 * texts);
    }
  });
}

TEST(GpuSpeech, NoStepGoesBeforeAListenersFirstPiece) {
  IN_CHILD({
    LogicalDevice& device = first_gpu();
    const Xtts model = lively_model(xtts_preset("tiny"));
    ASSERT_GT(final_frames(model.vocoder, 8), 0);
    constexpr int64_t codes = 40;
    for (const int listeners : {1, 2}) {
      const auto whole = speak(model, device, listeners, listeners, codes);
      SpeechEngine engine(model, device, {.places = listeners});
      std::vector<uint64_t> steps_before;  // of each piece
      std::vector<std::future<SpeechResult>> futures;
      for (int i = 0; i < listeners; ++i) {
        SpeechRequest request = a_request(model, i, codes - i % 5);
        request.chunk_codes = 10;
        request.on_sound = [&](std::span<const float>) {
          steps_before.push_back(engine.counters().steps);
        };
        futures.push_back(engine.submit(std::move(request)));
      }
      for (size_t i = 0; i < futures.size(); ++i)
        EXPECT_TRUE(futures[i].get().samples == whole[i].samples) << listeners << ", " << i;
      EXPECT_GE(steps_before.size(), 3u * static_cast<unsigned>(listeners));
      // The first code is the prompt's.
      if (listeners == 1) {
        EXPECT_EQ(steps_before.front(), 7u);
      }
      EXPECT_GT(steps_before.back(), 30u);
    }
  });
}

TEST(GpuSpeech, Float32OnTheGpuDrawsWhatTheCpuDraws) {
  IN_CHILD({
    LogicalDevice& device = first_gpu();
    const Xtts model = lively_model(xtts_preset("tiny"));
    const auto gpu = speak(model, device, 3, 4, 20, SpeechPrecision::fp32);
    const auto cpu =
        speak(model, DeviceRegistry::get().cpu(), 3, 4, 20, SpeechPrecision::automatic);
    const auto half = speak(model, device, 3, 4, 20, SpeechPrecision::fp16);
    int same = 0;
    for (size_t i = 0; i < cpu.size(); ++i) {
      EXPECT_EQ(gpu[i].codes, cpu[i].codes);
      for (size_t n = 0; n < cpu[i].codes.size(); ++n) same += half[i].codes[n] == cpu[i].codes[n];
    }
    // Half precision moves a draw now and then, not more: the two draw by the same rule.
    EXPECT_GT(same, 40);
  });
}

// All of it stands in one stream: a device that is busy when the decoder begins changes nothing.
TEST(GpuSpeech, Float32DrawsTheSameBehindOtherWork) {
  IN_CHILD({
    LogicalDevice& device = first_gpu();
    at::NoGradGuard no_gradients;
    const Xtts model = lively_model(xtts_preset("tiny"));
    const auto gpu = make_plain_decoder(model.gpt, device, 2);
    LogicalDevice& host = DeviceRegistry::get().cpu();
    const auto cpu = make_plain_decoder(model.gpt, host, 2);
    {
      DeviceScope scope(device);
      at::Tensor x = at::zeros({8192, 8192}, scope.options());
      for (int i = 0; i < 20; ++i) x = at::mm(x, x);  // tens of milliseconds each
    }
    const auto ours = decode_texts(*gpu, device, model, 0, 2, 1, 12);
    const auto reference = decode_texts(*cpu, host, model, 0, 2, 1, 12);
    for (size_t i = 0; i < ours.size(); ++i) EXPECT_EQ(ours[i].codes, reference[i].codes);
  });
}

TEST(GpuSpeech, SoundIsNearTheReferenceAndWindowsEqualOnePass) {
  IN_CHILD({
    LogicalDevice& device = first_gpu();
    for (const std::string size : {"tiny", "small", "normal"}) {
      const XttsConfig config = xtts_preset(size);
      const Vocoder vocoder = Vocoder::make(config, 5);
      DeviceScope scope(device);
      const auto maker = make_cuda_sound_maker(vocoder);
      std::vector<SoundWindow> windows;
      for (const int64_t codes : {1, 2, 3, 40, 90}) {
        windows.push_back({.latents = at::randn({codes, config.gpt.width}).cuda(),
                           .speaker = 0.05 * at::randn({config.speaker_embedding}),
                           .first = 0,
                           .count = vocoder.frames_of(codes)});
      }
      const auto sounds = maker->sound(windows);
      for (size_t i = 0; i < windows.size(); ++i) {
        const at::Tensor reference =
            vocoder(windows[i].latents.cpu().unsqueeze(0), windows[i].speaker.unsqueeze(0))
                .squeeze(0);
        ASSERT_EQ(sounds[i].sizes(), reference.sizes());
        EXPECT_GT(snr(sounds[i].cpu(), reference), 45) << size << " " << i;
        std::printf("vocoder %s, %ld codes: %.1f dB\n", size.c_str(),
                    static_cast<long>(windows[i].latents.size(0)), snr(sounds[i].cpu(), reference));
      }
      const SoundWindow& whole = windows.back();
      std::vector<at::Tensor> parts;
      const int64_t ends[] = {17, 60, final_frames(vocoder, 70), whole.count};
      int64_t first = 0;
      for (const int64_t end : ends) {
        SoundWindow part = whole;
        part.last = end > final_frames(vocoder, 70);
        if (!part.last) part.latents = whole.latents.narrow(0, 0, 70);
        part.first = first;
        part.count = end - first;
        parts.push_back(maker->sound({part}).front());
        first = end;
      }
      EXPECT_TRUE(at::equal(at::cat(parts), sounds.back())) << size;
    }
  });
}

}  // namespace tandem
