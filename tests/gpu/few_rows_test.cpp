// Steps of few rows by one choice of kernels and by the other: the same to the last bit, alone and
// in larger batches, which know one choice only. Needs a GPU.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "device/cuda_owner.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "generate/cuda_music_decoder.h"
#include "generate/speech_decoder.h"
#include "generate/speech_requests.h"
#include "gpu/in_child.h"
#include "gpu/lively_music.h"
#include "models/musicgen/delay_pattern.h"
#include "nn/rows/whole_step.h"
#include "nn/sample.h"

namespace tandem {
namespace {

constexpr FewRows all_apart{.whole = false, .early = false};
constexpr FewRows other_ways[] = {{.whole = false, .early = true}, {.whole = true, .early = true}};

std::string way_of(const FewRows& rows) { return rows.whole ? "one kernel" : "early"; }

MusicDecoderSize heads_of_64(int64_t heads, int64_t layers) {
  return {.width = 64 * heads,
          .layers = layers,
          .heads = heads,
          .inner = 256 * heads,
          .vocabulary = 200,
          .positions = 1300,
          .pad_token = 200};
}

constexpr int64_t caption_width = 48;

// Of 0 to 140 tokens; the caption of clip 2 is empty.
at::Tensor caption_of(int64_t clip) {
  const int64_t tokens = clip == 2 ? 0 : clip % 2 == 0 ? 3 + clip : 140 - clip;
  return make_parameter(5, "caption " + std::to_string(clip), {tokens, caption_width}, 1.0);
}

void read_captions(CudaMusicDecoder& decoder, int64_t first, int64_t clips) {
  for (int64_t i = 0; i < clips; ++i) decoder.read_text(i, caption_of(first + i).cuda());
}

// Clips `first` to `first + clips` - 1 through the captured step.
at::Tensor music_tokens(CudaMusicDecoder& decoder, const MusicDecoderSize& size, int64_t first,
                        int64_t clips, int64_t steps) {
  decoder.reserve({.clips = clips, .columns = 1 + steps, .text = 160});
  read_captions(decoder, first, clips);
  std::vector<uint64_t> seeds;
  for (int64_t i = 0; i < clips; ++i) seeds.push_back(static_cast<uint64_t>(100 + first + i));
  const DelayPattern pattern{.codebooks = size.codebooks,
                             .channels = size.channels,
                             .pad_token = size.pad_token,
                             .columns = 1 + steps};
  return decoder.decode({.forced = pattern.forced(at::empty({clips, size.codebooks, 0}, at::kLong)),
                         .seeds = seeds,
                         .draw = {.temperature = 1.1, .guidance_scale = 3, .top_k = 50}});
}

// Music of one size by one choice of kernels.
struct FewRowsMusic {
  FewRowsMusic(const MusicDecoder& from, const FewRows& few_rows,
               CudaMusicDecoder::Options options = {})
      : device(music_gpu()),
        scope(device),
        stream(raw_cuda_stream(device.compute_stream())),
        guard(stream),
        weights(from),
        decoder(weights, with(options, few_rows), stream) {}

  static CudaMusicDecoder::Options with(CudaMusicDecoder::Options options, const FewRows& rows) {
    options.few_rows = rows;
    return options;
  }
  void read(int64_t first, int64_t clips) { read_captions(decoder, first, clips); }
  at::Tensor logits(const at::Tensor& tokens, int64_t column, bool guided) {
    std::vector<uint64_t> seeds(static_cast<size_t>(tokens.size(0)), 1);
    return decoder.logits_behind(
        {.forced = tokens, .seeds = seeds, .draw = {.guidance_scale = guided ? 3.0 : 1.0}}, column);
  }
  at::Tensor tokens(int64_t first, int64_t clips, int64_t steps) {
    return music_tokens(decoder, weights.size, first, clips, steps);
  }

  at::NoGradGuard no_gradients;
  LogicalDevice& device;
  DeviceScope scope;
  c10::cuda::CUDAStream stream;
  c10::cuda::CUDAStreamGuard guard;
  MusicDecoder weights;
  CudaMusicDecoder decoder;
};

// Codes and latents of `texts` texts spoken side by side.
std::vector<at::Tensor> spoken(const Xtts& model, LogicalDevice& device, const FewRows& few_rows,
                               int texts, int64_t codes) {
  const auto decoder = make_cuda_decoder(model.gpt, device, texts, "fp16", few_rows);
  std::vector<DecodeStart> starts;
  std::vector<int> places;
  for (int i = 0; i < texts; ++i) {
    const SpeechRequest request = a_request(model, i, codes);
    starts.push_back(
        {.place = i,
         .prompt = model.gpt.prompt(request.text_ids, request.voice.conditioning).squeeze(0).cpu(),
         .sampling = request.sampling,
         .key = draw_key(static_cast<uint64_t>(i)),
         .max_codes = codes});
    places.push_back(i);
  }
  std::vector<std::vector<int64_t>> drawn(static_cast<size_t>(texts));
  const auto collect = [&] {
    for (const DrawnCode& code : decoder->collect())
      drawn[static_cast<size_t>(code.place)].push_back(code.code);
  };
  decoder->start(starts);
  while (decoder->queued() > 0) collect();
  for (int64_t step = 1; step < codes; ++step) {
    decoder->step(places);
    collect();
  }
  std::vector<at::Tensor> all;
  const c10::cuda::CUDAStreamGuard guard(raw_cuda_stream(device.compute_stream()));
  for (int i = 0; i < texts; ++i) {
    all.push_back(at::tensor(drawn[static_cast<size_t>(i)], at::kLong));
    all.push_back(decoder->latents(i, 0, codes).cpu());
  }
  return all;
}

}  // namespace

TEST(GpuFewRows, MusicsLogitsAreTheSameByAllKernels) {
  IN_CHILD({
    for (const MusicDecoderSize& size : {heads_of_64(3, 2), heads_of_64(16, 2)}) {
      const MusicDecoder weights = lively_decoder(size, caption_width);
      for (const RowHalf half : {RowHalf::fp16, RowHalf::bf16}) {
        for (const int64_t clips : {1, 2, 3}) {
          const at::Tensor tokens =
              at::randint(0, size.vocabulary, {clips, size.codebooks, 600}, at::kLong);
          const auto all = [&](const FewRows& rows) {
            FewRowsMusic music(weights, rows, {.half = half});
            std::vector<at::Tensor> found;
            for (const bool guided : {true, false}) {
              music.decoder.reserve({.clips = clips, .columns = 601, .text = 160});
              music.read(0, clips);
              for (const int64_t column : {0, 1, 15, 16, 17, 63, 530})
                found.push_back(music.logits(tokens, column, guided));
            }
            return found;
          };
          const std::vector<at::Tensor> before = all(all_apart);
          EXPECT_FALSE(at::equal(before[0], before[1]));
          EXPECT_FALSE(before.back().isnan().any().item<bool>());
          for (const FewRows& rows : other_ways) {
            const std::vector<at::Tensor> now = all(rows);
            ASSERT_EQ(now.size(), before.size());
            for (size_t i = 0; i < now.size(); ++i)
              EXPECT_TRUE(at::equal(now[i], before[i]))
                  << way_of(rows) << ", width " << size.width << ", " << clips << " clips, number "
                  << i << ", largest difference " << (now[i] - before[i]).abs().max().item<float>();
          }
        }
      }
    }
    // Otherwise the ways above were all one.
    const int major = at::cuda::getDeviceProperties(0)->major;
    EXPECT_EQ(whole_step_runs(2, 1024, 16, 4096), major == 9);
    EXPECT_FALSE(whole_step_runs(3, 1024, 16, 4096));
    EXPECT_FALSE(whole_step_runs(2, 1088, 17, 4352));
    EXPECT_FALSE(whole_step_runs(2, 1024, 32, 4096));
  });
}

TEST(GpuFewRows, MusicDrawsTheSameByAllKernelsAndInLargerBatches) {
  IN_CHILD({
    const MusicDecoder weights = lively_decoder(heads_of_64(16, 3), caption_width);
    const int64_t steps = 600;
    const at::Tensor together = FewRowsMusic(weights, all_apart).tokens(0, 8, steps);
    for (const bool eight : {false, true}) {
      const CudaMusicDecoder::Options options{.eight_bit_cache = eight};
      const at::Tensor before =
          eight ? FewRowsMusic(weights, all_apart, options).tokens(0, 8, steps) : together;
      for (const FewRows& rows : other_ways) {
        for (const int64_t clips : {1, 2}) {
          FewRowsMusic music(weights, rows, options);
          for (const int64_t first : {0, 2})
            EXPECT_TRUE(
                at::equal(music.tokens(first, clips, steps), before.narrow(0, first, clips)))
                << way_of(rows) << ", " << clips << " clips from " << first
                << (eight ? ", int8" : "");
          EXPECT_EQ(music.decoder.captures(), 1u);
        }
      }
    }
    EXPECT_FALSE(at::equal(together[0], together[1]));
  });
}

// Each needs nearly all of the GPU at once.
TEST(GpuFewRows, TwoWholeStepsAtOnceDoNotHoldEachOtherUp) {
  IN_CHILD({
    const MusicDecoder weights = lively_decoder(heads_of_64(16, 3), caption_width);
    const int64_t steps = 300;
    const at::Tensor alone = FewRowsMusic(weights, {}).tokens(0, 1, steps);
    std::vector<at::Tensor> found(4);
    std::vector<std::thread> threads;
    for (at::Tensor& tokens : found) {
      threads.emplace_back([&] {
        const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();
        const c10::cuda::CUDAStreamGuard guard(stream);
        const at::NoGradGuard no_gradients;
        CudaMusicDecoder decoder(weights, {}, stream);
        tokens = music_tokens(decoder, weights.size, 0, 1, steps);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const at::Tensor& tokens : found) EXPECT_TRUE(at::equal(tokens, alone));
  });
}

TEST(GpuFewRows, SpeechIsTheSameByAllKernelsAndInLargerBatches) {
  IN_CHILD({
    LogicalDevice& device = music_gpu();
    at::NoGradGuard no_gradients;
    XttsConfig wide = xtts_preset("normal");
    wide.gpt.layers = 3;
    for (const XttsConfig& config : {xtts_preset("small"), wide}) {
      const Xtts model = lively_model(config);
      const int64_t codes = std::min<int64_t>(260, model.gpt.size.max_new_codes());
      const std::vector<at::Tensor> together = spoken(model, device, all_apart, 20, codes);
      for (const int texts : {1, 2, 4, 9}) {
        const std::vector<at::Tensor> before = spoken(model, device, all_apart, texts, codes);
        for (const FewRows& rows : other_ways) {
          const std::vector<at::Tensor> now = spoken(model, device, rows, texts, codes);
          ASSERT_EQ(now.size(), before.size());
          for (size_t i = 0; i < now.size(); ++i) {
            EXPECT_TRUE(at::equal(now[i], before[i])) << way_of(rows) << ", " << texts << " texts";
            EXPECT_TRUE(at::equal(now[i], together[i]))
                << way_of(rows) << ", " << texts << " texts";
          }
        }
      }
      EXPECT_FALSE(at::equal(together[0], together[2]));
    }
  });
}

}  // namespace tandem
