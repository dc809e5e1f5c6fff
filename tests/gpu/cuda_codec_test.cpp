// EnCodec's decoder on CUDA against the float32 reference on the CPU. Needs a GPU.
#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>

#include "gpu/in_child.h"
#include "models/musicgen/cuda_codec.h"
#include "models/musicgen/musicgen.h"
#include "nn/conv/codec_kernels.h"
#include "nn/conv/codec_pack.h"
#include "tandem/error.h"

namespace tandem {
namespace {

double codec_snr(const at::Tensor& ours, const at::Tensor& reference) {
  const double noise = (ours - reference).pow(2).sum().item<double>();
  return 10 * std::log10(reference.pow(2).sum().item<double>() / std::max(noise, 1e-30));
}

EncodecSize published() { return Musicgen::config_of("small").codec; }

EncodecSize with_ratios(std::vector<int64_t> ratios) {
  EncodecSize size = published();
  size.ratios = std::move(ratios);
  return size;
}

// Random, with biases that are not zero.
Encodec codec_of(const EncodecSize& size) {
  Encodec codec = Encodec::make(size, 7);
  codec.visit("", [](const std::string& name, at::Tensor& parameter) {
    if (name.find("bias") != std::string::npos)
      parameter.copy_(make_parameter(9, name, parameter.sizes(), 0.1).detach());
  });
  return codec;
}

at::Tensor codes_of(const EncodecSize& size, int64_t clips, int64_t frames) {
  at::manual_seed(11 + clips + frames);
  return at::randint(size.codebook_size, {clips, size.codebooks, frames}, at::kLong);
}

at::Tensor decoded(CudaCodec& codec, const at::Tensor& codes) {
  const auto stream = c10::cuda::getCurrentCUDAStream();
  return codec.decode(codes, stream.stream()).cpu();
}

void expect_near_reference(const EncodecSize& size, const std::vector<int64_t>& lengths,
                           int64_t clips) {
  const at::NoGradGuard no_grad;
  const Encodec codec = codec_of(size);
  CudaCodec fast(codec, *std::max_element(lengths.begin(), lengths.end()), clips);
  for (const int64_t frames : lengths) {
    const at::Tensor codes = codes_of(size, clips, frames);
    const at::Tensor sound = decoded(fast, codes.cuda());
    const at::Tensor reference = codec.decode(codes).squeeze(1);
    ASSERT_EQ(sound.sizes(), reference.sizes());
    for (int64_t i = 0; i < clips; ++i) {
      const double near = codec_snr(sound[i], reference[i]);
      EXPECT_GT(near, 60) << frames << " frames, clip " << i;
      if (i == 0)
        std::printf("codec of hop %ld, %ld frames: %.1f dB\n", static_cast<long>(size.hop()),
                    static_cast<long>(frames), near);
    }
  }
}

}  // namespace

TEST(GpuCodec, SoundOfAnyLengthIsNearTheReference) {
  IN_CHILD({
    expect_near_reference(published(), {1, 2, 3, 4, 50}, 3);
    expect_near_reference(published(), {1500}, 1);
  });
}

TEST(GpuCodec, OtherRatiosAndWidthsAreNearTheReference) {
  IN_CHILD({
    expect_near_reference(with_ratios({5, 8, 3}), {1, 3, 100}, 2);
    expect_near_reference(with_ratios({7, 5}), {1, 2, 33}, 9);
  });
}

TEST(GpuCodec, ClipsLongerThanAWindowAreNearTheReference) {
  IN_CHILD({ expect_near_reference(with_ratios({5, 2}), {3072, 3073, 9000}, 1); });
}

TEST(GpuCodec, AClipSoundsTheSameInAnyCompany) {
  IN_CHILD({
    const at::NoGradGuard no_grad;
    const EncodecSize size = published();
    CudaCodec fast(codec_of(size), 300, 40);
    const at::Tensor codes = codes_of(size, 40, 300).cuda();
    const at::Tensor all = decoded(fast, codes);
    EXPECT_GT(all.abs().mean().item<double>(), 0.01);
    for (const int64_t together : {1, 3, 8, 12}) {
      for (const int64_t first : {0, 5, 28}) {
        const at::Tensor some = decoded(fast, codes.narrow(0, first, together));
        EXPECT_TRUE(at::equal(some, all.narrow(0, first, together))) << together << " " << first;
      }
    }
    const at::Tensor turned = decoded(fast, codes.flip(0));
    EXPECT_TRUE(at::equal(turned.flip(0), all));
    // Narrow integers, other strides, and another decoder made for less.
    const at::Tensor strided = codes.to(at::kInt).transpose(1, 2).contiguous().transpose(1, 2);
    EXPECT_TRUE(at::equal(decoded(fast, strided), all));
    CudaCodec small(codec_of(size), 300, 1);
    EXPECT_TRUE(at::equal(decoded(small, codes.narrow(0, 33, 1)), all.narrow(0, 33, 1)));
  });
}

// Their LSTMs wait for blocks of their own that may not be running yet.
TEST(GpuCodec, SeveralDecodersShareAGpu) {
  IN_CHILD({
    const at::NoGradGuard no_grad;
    const EncodecSize size = published();
    const Encodec codec = codec_of(size);
    const at::Tensor codes = codes_of(size, 4, 400).cuda();
    std::vector<std::unique_ptr<CudaCodec>> decoders;
    for (int i = 0; i < 4; ++i) decoders.push_back(std::make_unique<CudaCodec>(codec, 400, 4));
    const at::Tensor alone = decoded(*decoders[0], codes);
    std::vector<at::Tensor> sounds;
    for (int round = 0; round < 3; ++round) {
      sounds.clear();
      for (const auto& decoder : decoders) {
        const auto stream = c10::cuda::getStreamFromPool();
        sounds.push_back(decoder->decode(codes, stream.stream()));
      }
    }
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (const at::Tensor& sound : sounds) EXPECT_TRUE(at::equal(sound.cpu(), alone));
  });
}

TEST(GpuCodec, AnLstmStepByStepEqualsOneLaunch) {
  IN_CHILD({
    const auto floats = at::TensorOptions(at::kCUDA).dtype(at::kFloat);
    const auto stream = c10::cuda::getCurrentCUDAStream();
    for (const int width : {256, 512, 1024}) {
      const int clips = 11, steps = 20;
      at::manual_seed(3);
      const auto drawn = [&](at::IntArrayRef shape) { return at::randn(shape) / std::sqrt(width); };
      const PackedCodecLstm layer =
          pack_codec_lstm(drawn({4 * width, width}), drawn({4 * width, width}), drawn({4 * width}),
                          drawn({4 * width}), /*hopper=*/false);
      const at::Tensor gates = at::randn({clips, steps, 4 * width}).cuda();
      const at::Tensor skip = at::randn({clips, steps, width}).cuda();
      std::vector<at::Tensor> out;
      for (const bool one_by_one : {false, true}) {
        const at::Tensor cell = at::zeros({clips, width}, floats);
        const at::Tensor hidden = at::zeros({steps + 1, clips, width}, floats.dtype(at::kHalf));
        hidden.narrow(0, 1, steps).view(at::kShort).fill_(-1);
        out.push_back(at::zeros({clips, steps, width}, floats.dtype(at::kHalf)));
        CodecLstm call;
        call.clips = clips;
        call.width = width;
        call.steps = steps;
        call.one_by_one = one_by_one;
        call.gates = gates.const_data_ptr<float>();
        call.gate_clip_stride = steps * 4 * width;
        call.gate_step_stride = 4 * width;
        call.weight = layer.hidden.const_data_ptr();
        call.cell = cell.mutable_data_ptr<float>();
        call.hidden = hidden.mutable_data_ptr();
        call.skip = skip.const_data_ptr<float>();
        call.skip_stride = call.out_stride = steps * width;
        call.half_out = out.back().mutable_data_ptr();
        launch_codec_lstm(call, stream.stream());
        out.back() = at::cat({out.back().cpu().to(at::kFloat).flatten(), cell.cpu().flatten(),
                              hidden.cpu().to(at::kFloat).flatten()});
      }
      EXPECT_TRUE(at::equal(out[0], out[1])) << width;
      EXPECT_TRUE(out[0].isfinite().all().item<bool>()) << width;
    }
  });
}

TEST(GpuCodec, WindowsOfALongClipEqualOnePass) {
  IN_CHILD({
    const at::NoGradGuard no_grad;
    const EncodecSize size = with_ratios({8, 5, 4});
    CudaCodec fast(codec_of(size), 7000, 1);
    const at::Tensor codes = codes_of(size, 1, 7000).cuda();
    const at::Tensor whole = decoded(fast, codes);
    // Cut short, a clip is the same up to where its end is heard.
    const at::Tensor cut = decoded(fast, codes.narrow(2, 0, 3072));
    const int64_t same = (3072 - 8) * size.hop();
    EXPECT_TRUE(at::equal(cut.narrow(1, 0, same), whole.narrow(1, 0, same)));
    EXPECT_FALSE(at::equal(cut, whole.narrow(1, 0, cut.size(1))));
  });
}

TEST(GpuCodec, TakesTheBytesItSays) {
  IN_CHILD({
    const EncodecSize size = published();
    const Encodec codec = codec_of(size);
    const auto taken = [] {
      return c10::cuda::CUDACachingAllocator::getDeviceStats(0)
          .allocated_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)]
          .current;
    };
    at::empty({1}, at::kCUDA);
    const int64_t before = taken();
    CudaCodec fast(codec, 1500, 32);
    const auto real = static_cast<double>(taken() - before);
    EXPECT_NEAR(real / static_cast<double>(CudaCodec::bytes(size, 1500, 32)), 1, 0.01);
    EXPECT_LT(real, 1.6e9);
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const at::Tensor codes = codes_of(size, 32, 1500).cuda();
    const int64_t made = taken();
    fast.decode(codes, stream.stream());
    EXPECT_EQ(taken(), made);
    stream.synchronize();
  });
}

TEST(GpuCodec, RefusesWhatItHasNoKernelsFor) {
  IN_CHILD({
    EXPECT_TRUE(CudaCodec::fits(published()));
    EXPECT_FALSE(CudaCodec::fits(Musicgen::config_of("tiny").codec));
    for (const auto change : {+[](EncodecSize& size) { size.causal = true; },
                              +[](EncodecSize& size) { size.channels = 2; },
                              +[](EncodecSize& size) { size.padding = "constant"; },
                              +[](EncodecSize& size) { size.residual_layers = 2; },
                              +[](EncodecSize& size) { size.shortcut_conv = true; },
                              +[](EncodecSize& size) { size.lstm_layers = 1; },
                              +[](EncodecSize& size) { size.filters = 32; },
                              +[](EncodecSize& size) { size.last_kernel = 5; }}) {
      EncodecSize size = published();
      change(size);
      EXPECT_FALSE(CudaCodec::fits(size));
    }
    EXPECT_THROW(CudaCodec(Encodec::make(Musicgen::config_of("tiny").codec, 1), 10, 1), Error);
    const EncodecSize size = with_ratios({5, 2});
    CudaCodec fast(codec_of(size), 10, 2);
    for (const at::Tensor& codes : {codes_of(size, 3, 10), codes_of(size, 2, 11)}) {
      EXPECT_THROW(decoded(fast, codes.cuda()), Error);
    }
    EXPECT_THROW(decoded(fast, codes_of(size, 1, 10)), Error);
    EXPECT_THROW(decoded(fast, codes_of(size, 1, 10).cuda().to(at::kFloat)), Error);
  });
}

}  // namespace tandem
