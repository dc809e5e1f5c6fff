// Convolutions of halves, by both kinds of kernels, against LibTorch's in double precision on the
// CPU. Needs a GPU.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gpu/in_child.h"
#include "nn/conv/conv_pack.h"

namespace tandem {
namespace {

constexpr float slope = 0.1f;

at::Tensor drawn(at::IntArrayRef shape) { return at::randn(shape); }
at::Tensor halved(const at::Tensor& x) { return x.to(at::kHalf).to(at::kDouble); }
at::Tensor floats(const at::Tensor& x) { return x.to(at::kCUDA, at::kFloat).contiguous(); }

std::vector<bool> kinds() {
  return hopper_conv_runs() ? std::vector<bool>{false, true} : std::vector<bool>{false};
}

double distance(const at::Tensor& ours, const at::Tensor& reference) {
  const at::Tensor there = reference.to(at::kDouble);
  return ((ours.cpu().to(at::kDouble) - there).norm() / there.norm()).item<double>();
}

// Clips side by side in one buffer of the longest's length.
struct Clips {
  std::vector<int64_t> lengths;
  at::Tensor x, counts;  // [B, T, C] on the CPU; [B] on the GPU

  Clips(const std::vector<int64_t>& of, int64_t channels)
      : lengths(of),
        x(drawn(
            {static_cast<int64_t>(of.size()), *std::max_element(of.begin(), of.end()), channels})),
        counts(at::tensor(of, at::kInt).cuda()) {}

  void tell(ConvCall& call) const {
    call.clips = static_cast<int>(lengths.size());
    call.lengths = counts.const_data_ptr<int32_t>();
    call.rows = static_cast<int>(x.size(1)) + (call.rate > 1);
    call.in_stride = x.size(1) * call.channels;
    call.out_stride = x.size(1) * call.columns;
    call.activation = Activation::leaky_relu;
    call.slope = slope;
  }
  at::Tensor heard(size_t clip) const {  // [1, C, length] of halves
    const at::Tensor mine = x[static_cast<int64_t>(clip)].narrow(0, 0, lengths[clip]);
    return halved(at::leaky_relu(mine, slope)).t().unsqueeze(0);
  }
};

cudaStream_t stream() { return c10::cuda::getCurrentCUDAStream(); }

}  // namespace

TEST(GpuConv, DilatedConvolutionsOfClipsAreNearTheReference) {
  IN_CHILD({
    at::manual_seed(3);
    for (const bool hopper : kinds()) {
      for (const int64_t channels : {32, 64, 96, 128, 288}) {
        const Clips clips({301, 7, 150}, channels);
        const at::Tensor in = floats(clips.x), weight = drawn({2 * channels, channels, 7});
        const at::Tensor bias = drawn({2 * channels}), own = drawn({3, 2 * channels});
        const PackedConv packed = pack_conv(weight, bias, hopper);
        const at::Tensor base = floats(drawn({3, 301, 2 * channels})), own_bias = floats(own);
        const at::Tensor out = at::full_like(base, 0.25), half = at::empty_like(base, at::kHalf);
        ConvCall call = packed.call();
        call.dilation = 3;
        call.first *= 3;
        call.clip_bias = own_bias.const_data_ptr<float>();
        clips.tell(call);
        call.in = in.const_data_ptr<float>();
        call.half_out = half.mutable_data_ptr();
        launch_conv(call, stream());
        call.half_out = nullptr;
        call.residual = base.const_data_ptr<float>();
        call.scale = 0.5f;
        call.accumulate = true;
        call.out = out.mutable_data_ptr<float>();
        launch_conv(call, stream());
        for (size_t i = 0; i < 3; ++i) {
          const auto b = static_cast<int64_t>(i);
          const int64_t length = clips.lengths[i];
          const at::Tensor y = at::conv1d(clips.heard(i), halved(weight),
                                          (bias + own[b]).to(at::kDouble), 1, 9, 3)[0]
                                   .t();
          const std::string what = fmt::format("{} channels, clip {}, {}", channels, i, hopper);
          EXPECT_LT(distance(half[b].narrow(0, 0, length), at::leaky_relu(y, slope)), 1e-3) << what;
          const at::Tensor whole = (y + base[b].narrow(0, 0, length).cpu()) * 0.5 + 0.25;
          EXPECT_LT(distance(out[b].narrow(0, 0, length), whole), 1e-4) << what;
          // Behind a clip's end nothing is written.
          EXPECT_TRUE((out[b].narrow(0, length, 301 - length) == 0.25).all().item<bool>()) << what;
        }
      }
    }
  });
}

TEST(GpuConv, TransposedConvolutionsAreNearTheReference) {
  IN_CHILD({
    at::manual_seed(3);
    for (const bool hopper : kinds()) {
      for (const int64_t rate : {2, 4, 8}) {
        const int64_t out_channels = rate == 2 ? 32 : rate == 4 ? 192 : 128;
        const Clips clips({90, 1, 33}, 64);
        const at::Tensor in = floats(clips.x), weight = drawn({64, out_channels, 2 * rate});
        const at::Tensor bias = drawn({out_channels});
        const PackedConv packed = pack_transposed_conv(weight, bias, rate, hopper);
        const at::Tensor out = at::zeros({3, 90 * rate, out_channels}, in.options());
        ConvCall call = packed.call();
        call.rate = static_cast<int>(rate);
        call.shift = static_cast<int>(rate / 2);
        clips.tell(call);
        call.in = in.const_data_ptr<float>();
        call.out = out.mutable_data_ptr<float>();
        launch_conv(call, stream());
        for (size_t i = 0; i < 3; ++i) {
          const at::Tensor y = at::conv_transpose1d(clips.heard(i), halved(weight),
                                                    bias.to(at::kDouble), rate, rate / 2)[0]
                                   .t();
          EXPECT_LT(distance(out[static_cast<int64_t>(i)].narrow(0, 0, y.size(0)), y), 1e-4)
              << rate << ", clip " << i << ", " << hopper;
        }
      }
    }
  });
}

TEST(GpuConv, ReflectedEndsAndWindowsOfRowsAreNearTheReference) {
  IN_CHILD({
    at::manual_seed(3);
    for (const bool hopper : kinds()) {
      const int64_t length = 40, first = 13, rows = 22;
      const at::Tensor x = drawn({2, length, 64}), weight = drawn({128, 64, 7});
      const at::Tensor bias = drawn({128}), in = floats(x);
      const PackedConv packed = pack_conv(weight, bias, hopper);
      const at::Tensor reference =
          at::conv1d(at::reflection_pad1d(halved(at::elu(x)).transpose(1, 2), {3, 3}),
                     halved(weight), bias.to(at::kDouble))
              .transpose(1, 2);
      for (const bool window : {false, true}) {
        const int64_t count = window ? rows : length;
        const at::Tensor out = at::zeros({2, count, 128}, in.options());
        ConvCall call = packed.call();
        call.clips = 2;
        call.length = static_cast<int>(length);
        call.reflect = true;
        call.first_row = static_cast<int>(window ? first : 0);
        call.rows = static_cast<int>(count);
        call.in = in.const_data_ptr<float>();
        call.in_stride = length * 64;
        call.activation = Activation::elu;
        call.out = out.mutable_data_ptr<float>();
        call.out_stride = count * 128;
        launch_conv(call, stream());
        EXPECT_LT(distance(out, reference.narrow(1, call.first_row, count)), 1e-4)
            << window << ", " << hopper;
      }
    }
  });
}

// One clip alone has small tiles, eighty have large ones; two convolutions may be one kernel.
TEST(GpuConv, TilesAndPairsGiveTheSameBits) {
  IN_CHILD({
    at::manual_seed(3);
    for (const bool hopper : kinds()) {
      for (const int64_t channels : {32, 64, 128, 256}) {
        for (const int64_t taps : {3, 11}) {
          const std::vector<int64_t> lengths(80, 801);
          const Clips many(lengths, channels), one({801}, channels);
          const at::Tensor in = floats(many.x);
          const PackedConv first = pack_conv(drawn({channels, channels, taps}), drawn({channels}),
                                             hopper),
                           second = pack_conv(drawn({channels, channels, taps}), drawn({channels}),
                                              hopper);
          const at::Tensor half = at::empty_like(in, at::kHalf);
          const auto run = [&](const Clips& clips, const at::Tensor& from, bool pair) {
            const at::Tensor out = at::empty_like(from);
            ConvCall inner = first.call(), outer = second.call();
            inner.dilation = 5;
            inner.first *= 5;
            clips.tell(inner);
            clips.tell(outer);
            inner.in = outer.residual = from.const_data_ptr<float>();
            inner.half_out = half.mutable_data_ptr();
            outer.half_in = half.const_data_ptr();
            outer.out = out.mutable_data_ptr<float>();
            if (pair) {
              launch_conv_pair(inner, outer, stream());
            } else {
              launch_conv(inner, stream());
              launch_conv(outer, stream());
            }
            return out;
          };
          const std::string what = fmt::format("{} channels, {} taps, {}", channels, taps, hopper);
          const at::Tensor all = run(many, in, false), alone = in.narrow(0, 79, 1).contiguous();
          EXPECT_TRUE(at::equal(run(many, in, true), all)) << what;
          EXPECT_TRUE(at::equal(run(one, alone, false)[0], all[79])) << what;
          EXPECT_TRUE(at::equal(run(one, alone, true)[0], all[79])) << what;
        }
      }
    }
  });
}

}  // namespace tandem
