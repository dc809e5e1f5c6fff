// MusicGen on CUDA against float32 on the CPU and against itself in other batches. Needs a GPU.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "device/cuda_owner.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "generate/cuda_music_decoder.h"
#include "gpu/in_child.h"
#include "gpu/lively_music.h"
#include "models/musicgen/delay_pattern.h"
#include "models/musicgen/music_steps.h"

namespace tandem {
namespace {

MusicDecoderSize narrow_size() {
  return {.width = 256,
          .layers = 3,
          .heads = 16,
          .inner = 512,
          .vocabulary = 200,
          .positions = 400,
          .pad_token = 200};
}
MusicDecoderSize odd_size() {  // heads of 56, stereo
  return {.width = 280,
          .layers = 2,
          .heads = 5,
          .inner = 300,
          .codebooks = 8,
          .vocabulary = 130,
          .positions = 100,
          .channels = 2,
          .pad_token = 130};
}
MusicDecoderSize wide_size() {  // heads of 96
  return {.width = 1152,
          .layers = 2,
          .heads = 12,
          .inner = 2304,
          .vocabulary = 256,
          .positions = 300,
          .pad_token = 256};
}

constexpr int64_t text_width = 48;

at::Tensor text_of(int64_t clip) {
  return make_parameter(5, "text " + std::to_string(clip), {3 + clip * 7 % 40, text_width}, 1.0)
      .cpu();
}

struct Fixture {
  explicit Fixture(const MusicDecoderSize& size, CudaMusicDecoder::Options options = {})
      : device(music_gpu()),
        stream(raw_cuda_stream(device.compute_stream())),
        scope(device),
        guard(stream),
        model(size),
        weights(lively_decoder(size, text_width)),
        decoder(weights, options, stream) {}

  at::NoGradGuard no_gradients;
  LogicalDevice& device;
  c10::cuda::CUDAStream stream;
  DeviceScope scope;
  c10::cuda::CUDAStreamGuard guard;
  MusicDecoderSize model;
  MusicDecoder weights;
  CudaMusicDecoder decoder;

  DelayPattern pattern(int64_t new_tokens) const {
    return {.codebooks = model.codebooks,
            .channels = model.channels,
            .pad_token = model.pad_token,
            .columns = 1 + new_tokens};
  }
  // Clips `first` to `first + count` - 1, in that order or backwards.
  at::Tensor tokens(int64_t first, int64_t count, int64_t new_tokens, MusicDrawOptions draw,
                    bool backwards = false, int64_t room = 0) {
    decoder.reserve({.clips = std::max(count, room),
                     .columns = 1 + new_tokens,
                     .text = 64,
                     .guided = draw.guided()});
    std::vector<uint64_t> seeds;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t clip = backwards ? first + count - 1 - i : first + i;
      decoder.read_text(i, text_of(clip).cuda());
      seeds.push_back(static_cast<uint64_t>(100 + clip));
    }
    const at::Tensor none = at::empty({count, model.codebooks, 0}, at::kLong);
    const at::Tensor all =
        decoder.decode({.forced = pattern(new_tokens).forced(none), .seeds = seeds, .draw = draw});
    return backwards ? all.flip(0) : all;
  }
};

// [2B, K, V] of the float32 decoder on the CPU.
at::Tensor reference_logits(const MusicDecoder& decoder, int64_t clips, const at::Tensor& tokens,
                            bool guided) {
  const MusicStepWeights weights = MusicStepWeights::make(decoder, at::kCPU);
  std::vector<at::Tensor> texts;
  for (int64_t i = 0; i < clips; ++i) texts.push_back(text_of(i));
  MusicSteps steps(weights, texts, {.guided = guided, .columns = tokens.size(2)});
  const MusicLogits logits = steps.advance(tokens);
  return guided ? at::cat({logits.cond, logits.uncond}) : logits.cond;
}

}  // namespace

TEST(GpuMusic, HalfPrecisionLogitsAreNearFloat32) {
  IN_CHILD({
    struct Kind {
      const char* name;
      CudaMusicDecoder::Options options;
      double least;  // decibel
    };
    for (const MusicDecoderSize& size : {narrow_size(), odd_size(), wide_size()}) {
      for (const Kind& kind :
           {Kind{"fp16", {.half = RowHalf::fp16}, 45}, Kind{"bf16", {.half = RowHalf::bf16}, 28},
            Kind{"int8 cache", {.eight_bit_cache = true}, 30}}) {
        for (const int64_t columns : {1, 40, 90}) {
          Fixture at(size, kind.options);
          const int64_t clips = 3;
          const at::Tensor tokens =
              at::randint(0, size.vocabulary, {clips, size.codebooks, columns}, at::kLong);
          at.decoder.reserve({.clips = clips, .columns = columns + 2, .text = 64});
          for (int64_t i = 0; i < clips; ++i) at.decoder.read_text(i, text_of(i).cuda());
          for (const bool guided : {true, false}) {
            const at::Tensor ours =
                at.decoder.logits_behind({.forced = at::constant_pad_nd(tokens, {0, 1}, -1),
                                          .seeds = {1, 2, 3},
                                          .draw = {.guidance_scale = guided ? 3.0 : 1.0}},
                                         columns - 1);
            const at::Tensor theirs = reference_logits(at.weights, clips, tokens, guided);
            ASSERT_EQ(ours.sizes(), theirs.sizes());
            const double near = decibel(ours, theirs);
            EXPECT_GT(near, kind.least) << kind.name << " width " << size.width;
            if (guided)
              std::printf(
                  "logits, width %ld, %s, %ld columns: %.1f dB, largest error %.4f of %.1f\n",
                  static_cast<long>(size.width), kind.name, static_cast<long>(columns), near,
                  (ours - theirs).abs().max().item<double>(), theirs.abs().max().item<double>());
          }
        }
      }
    }
  });
}

TEST(GpuMusic, DrawsTheSameInEveryBatchAndPlace) {
  IN_CHILD({
    const MusicDrawOptions draw{
        .temperature = 1.1, .top_p = 0.95, .guidance_scale = 3, .top_k = 50};
    for (const bool eight : {false, true}) {
      Fixture at(narrow_size(), {.eight_bit_cache = eight});
      const int64_t steps = 260;
      const at::Tensor together = at.tokens(0, 32, steps, draw);
      EXPECT_EQ(at.decoder.captures(), 1u);
      EXPECT_TRUE(at::equal(at.tokens(0, 32, steps, draw, /*backwards=*/true), together));
      EXPECT_EQ(at.decoder.captures(), 1u);
      for (const int64_t first : {0, 7, 21})
        EXPECT_TRUE(at::equal(at.tokens(first, 7, steps, draw), together.narrow(0, first, 7)))
            << first;
      EXPECT_EQ(at.decoder.captures(), 2u);  // a step of eight clips
      at.decoder.release();
      for (const int64_t clip : {0, 31})
        EXPECT_TRUE(at::equal(at.tokens(clip, 1, steps, draw), together.narrow(0, clip, 1)))
            << clip;
      EXPECT_EQ(at.decoder.captures(), 3u);
      EXPECT_FALSE(at::equal(together[0], together[1]));
      EXPECT_TRUE(together.min().item<int64_t>() >= 0);
      const DelayPattern pattern = at.pattern(steps);
      EXPECT_TRUE(at::equal(pattern.forced(pattern.codes(together)), together));
    }
  });
}

TEST(GpuMusic, PromptsAndNoCacheGiveWhatStepsGive) {
  IN_CHILD({
    const MusicDrawOptions draw{.top_k = 30};
    const int64_t steps = 90;
    Fixture at(narrow_size());
    const at::Tensor whole = at.tokens(0, 3, steps, draw);
    const at::Tensor codes = at.pattern(steps).codes(whole);
    for (const bool eight : {false, true}) {
      Fixture again(narrow_size(), {.eight_bit_cache = eight});
      const at::Tensor known =
          eight ? again.pattern(steps).codes(again.tokens(0, 3, steps, draw)) : codes;
      const int64_t prompted = 41;
      again.decoder.reserve({.clips = 3, .columns = 1 + steps, .text = 64, .prompted = true});
      for (int64_t i = 0; i < 3; ++i) again.decoder.read_text(i, text_of(i).cuda());
      // As many draws are left out as the prompt has frames, so the rest draws the same numbers.
      const at::Tensor tokens =
          again.decoder.decode({.forced = again.pattern(steps).forced(known.narrow(2, 0, prompted)),
                                .prompt_frames = prompted,
                                .first_step = prompted,
                                .seeds = {100, 101, 102},
                                .draw = draw});
      EXPECT_TRUE(at::equal(again.pattern(steps).codes(tokens), known)) << eight;
    }
    Fixture without(narrow_size(), {.use_cache = false});
    EXPECT_TRUE(at::equal(without.tokens(0, 3, steps, draw), whole));
  });
}

TEST(GpuMusic, DrawsWhatTheHostDraws) {
  IN_CHILD({
    LogicalDevice& device = music_gpu();
    DeviceScope scope(device);
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
    const int64_t clips = 64, codebooks = 4;
    for (const int64_t codes : {2048, 130}) {
      at::Tensor logits = 4 * make_parameter(9, "logits", {2 * clips, codebooks, codes}, 1.0).cpu();
      logits.narrow(0, 0, clips / 2).mul_(4).round_().div_(4);  // equal ones
      logits.narrow(0, clips, clips / 2).zero_();
      const at::Tensor there = logits.cuda();
      const auto ints = at::TensorOptions(at::kCUDA).dtype(at::kInt);
      const at::Tensor place = at::arange(clips, ints), position = at::zeros({clips}, ints);
      std::vector<int64_t> seeds;
      for (int64_t i = 0; i < clips; ++i)
        seeds.push_back(static_cast<int64_t>(music_key(static_cast<uint64_t>(i))));
      const at::Tensor keys = at::tensor(seeds, at::kLong).cuda();
      for (const MusicDrawOptions& draw : std::vector<MusicDrawOptions>{
               {.guidance_scale = 3, .top_k = 50},
               {.temperature = 1.2, .top_p = 0.95, .guidance_scale = 3.5, .top_k = 250},
               {.temperature = 0.5, .top_p = 0.85, .guidance_scale = 4.5, .top_k = 100},
               {.top_p = 0.3, .guidance_scale = 1, .top_k = 0},
               {.top_p = 0, .guidance_scale = 2, .top_k = 0},
               {.guidance_scale = 3, .top_k = 0},
               {.guidance_scale = 3, .top_k = 1},
               {.greedy = true, .guidance_scale = 3}}) {
        const MusicDrawSettings settings{.first = 7,
                                         .top_p = draw.top_p,
                                         .temperature = static_cast<float>(draw.temperature),
                                         .guidance = static_cast<float>(draw.guidance_scale),
                                         .top_k = static_cast<int32_t>(draw.top_k),
                                         .greedy = draw.greedy};
        at::Tensor bytes = at::empty({static_cast<int64_t>(sizeof settings)}, at::kByte);
        std::memcpy(bytes.mutable_data_ptr<uint8_t>(), &settings, sizeof settings);
        bytes = bytes.cuda();
        const at::Tensor tokens = at::full({clips, codebooks, 2}, -1, ints);
        const at::Tensor column = at::zeros({1}, ints), failed = at::zeros({1}, ints);
        launch_music_draw(
            {.rows = static_cast<int>(clips),
             .codes = static_cast<int>(codes),
             .guided = draw.guided(),
             .logits = there.const_data_ptr<float>(),
             .place = place.const_data_ptr<int32_t>(),
             .position = position.const_data_ptr<int32_t>(),
             .batch = {.tokens = tokens.mutable_data_ptr<int32_t>(),
                       .column = column.mutable_data_ptr<int32_t>(),
                       .failed = failed.mutable_data_ptr<int32_t>(),
                       .clips = static_cast<int>(clips),
                       .codebooks = static_cast<int>(codebooks),
                       .columns = 2},
             .keys = reinterpret_cast<const uint64_t*>(keys.const_data_ptr<int64_t>()),
             .settings =
                 reinterpret_cast<const MusicDrawSettings*>(bytes.const_data_ptr<uint8_t>())},
            stream);
        const at::Tensor ours = tokens.select(2, 1).cpu().to(at::kLong);
        EXPECT_EQ(column.item<int32_t>(), 1);
        EXPECT_EQ(failed.item<int32_t>(), 0);
        const at::Tensor scores = guided_scores(
            logits.narrow(0, 0, clips),
            draw.guided() ? logits.narrow(0, clips, clips) : at::Tensor(), draw.guidance_scale);
        std::vector<uint64_t> own;
        for (int64_t i = 0; i < clips; ++i) own.push_back(static_cast<uint64_t>(i));
        MusicDraws draws = MusicDraws::counted(own);
        EXPECT_TRUE(at::equal(ours, draws(scores, draw, 7)))
            << codes << " codes, top_k " << draw.top_k << ", top_p " << draw.top_p;
      }
    }
  });
}

TEST(GpuMusic, SampledTokensFollowTheReferenceProbabilities) {
  IN_CHILD({
    // Many clips of one caption differ in their seeds only: their first tokens are draws from one
    // distribution, that of the float32 reference on the CPU.
    Fixture at(narrow_size());
    const MusicDrawOptions draw{.guidance_scale = 3, .top_k = 50};
    const int64_t clips = 512, rounds = 16;
    at.decoder.reserve({.clips = clips, .columns = 9, .text = 64});
    for (int64_t i = 0; i < clips; ++i) at.decoder.read_text(i, text_of(0).cuda());
    const at::Tensor start = at::full({1, at.model.codebooks, 1}, at.model.pad_token, at::kLong);
    const at::Tensor logits = reference_logits(at.weights, 1, start, true);
    const at::Tensor scores =
        guided_scores(logits.narrow(0, 0, 1), logits.narrow(0, 1, 1), 3.0)[0][0].contiguous();
    const std::vector<double> chances =
        music_chances({scores.const_data_ptr<float>(), static_cast<size_t>(scores.numel())}, draw);
    std::vector<double> seen(chances.size());
    for (int64_t round = 0; round < rounds; ++round) {
      std::vector<uint64_t> seeds;
      for (int64_t i = 0; i < clips; ++i) seeds.push_back(static_cast<uint64_t>(round * clips + i));
      const at::Tensor tokens =
          at.decoder.decode({.forced = at.pattern(8).forced(at::empty({clips, 4, 0}, at::kLong)),
                             .seeds = seeds,
                             .draw = draw});
      for (int64_t i = 0; i < clips; ++i)
        seen[static_cast<size_t>(tokens[i][0][1].item<int64_t>())] += 1;
    }
    const auto all = static_cast<double>(clips * rounds);
    double chi = 0;
    int kinds = 0;
    double rare = 0, rare_seen = 0;  // kinds of fewer than 8 expected go together
    for (size_t i = 0; i < chances.size(); ++i) {
      const double expected = all * chances[i];
      if (expected < 8) {
        rare += expected, rare_seen += seen[i];
        continue;
      }
      chi += std::pow(seen[i] - expected, 2) / expected;
      ++kinds;
    }
    if (rare > 1) chi += std::pow(rare_seen - rare, 2) / rare, ++kinds;
    const double freedom = kinds - 1;
    std::printf("chi-square %.1f at %.0f degrees of freedom, %.0f draws\n", chi, freedom, all);
    EXPECT_LT(chi, freedom + 5 * std::sqrt(2 * freedom));
    EXPECT_GT(kinds, 10);
  });
}

}  // namespace tandem
