// The vocoder as a chain of convolution kernels over all windows at once. Between layers values are
// float32; products read them rounded to half (11 bits, as TF32 has), so the sound keeps about 60
// dB to the float32 reference, where half precision throughout has 27.
#include "models/xtts/sound_window.h"
#include "tandem/error.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>

#include "nn/conv/conv_pack.h"
#include "nn/conv/vocoder_kernels.h"
#include "nn/rows/row_kernels.h"

namespace tandem {
namespace {

constexpr float slope = 0.1f, last_slope = 0.01f;
constexpr int64_t most_frames_at_once = 16384;  // of all windows; bounds the buffers

int64_t padded(int64_t channels) { return padded_to(channels, 32); }

at::Tensor pad_bias(const at::Tensor& bias, int64_t channels) {
  at::Tensor full = at::zeros({channels});
  if (bias.defined()) full.narrow(0, 0, bias.size(0)).copy_(bias);
  return full;
}

class CudaSoundMaker final : public SoundMaker {
 public:
  explicit CudaSoundMaker(const Vocoder& vocoder)
      : vocoder_(vocoder), hopper_(hopper_conv_runs()), pre_(pack(vocoder.pre)) {
    std::vector<at::Tensor> weights, biases;
    const auto told = [&](const Vocoder::Convolution& layer) {
      const int64_t out = layer.weight.size(0);
      at::Tensor full = at::zeros({padded(out), layer.weight.size(1)});
      full.narrow(0, 0, out).copy_(layer.weight.squeeze(-1));
      weights.push_back(full);
      biases.push_back(pad_bias(layer.bias, padded(out)));
      speaker_widths_.push_back(padded(out));
    };
    told(vocoder.speaker);
    for (const Vocoder::Stage& stage : vocoder.stages) {
      if (stage.up.weight.size(2) != 2 * stage.rate || stage.rate % 2 != 0) {
        throw Error(ErrorKind::data, "the vocoder's upsampling kernels are not twice their rates");
      }
      told(stage.speaker);
      Packed packed{.up = pack_transposed_conv(stage.up.weight, stage.up.bias, stage.rate, hopper_),
                    .rate = stage.rate};
      for (const Vocoder::ResidualBlock& block : stage.residual) {
        for (size_t i = 0; i < block.first.size(); ++i) {
          packed.first.push_back(pack(block.first[i]));
          packed.second.push_back(pack(block.second[i]));
        }
      }
      stages_.push_back(std::move(packed));
    }
    speaker_weight_ = at::cat(weights).t().contiguous().cuda();
    speaker_bias_ = at::cat(biases).cuda();
    const int64_t width = padded(vocoder.post.weight.size(1)), taps = vocoder.post.weight.size(2);
    post_ = at::zeros({taps, width}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
    post_.narrow(1, 0, vocoder.post.weight.size(1)).copy_(vocoder.post.weight[0].t());
    if (vocoder.post.bias.defined()) post_bias_ = vocoder.post.bias[0].item<float>();
  }

  std::vector<at::Tensor> sound(const std::vector<SoundWindow>& windows) override {
    std::vector<at::Tensor> sounds;
    size_t first = 0;
    while (first < windows.size()) {
      size_t last = first;
      int64_t longest = 0;
      while (last < windows.size()) {
        const int64_t frames = windows[last].to(vocoder_) - windows[last].from(vocoder_);
        const int64_t grown = std::max(longest, frames);
        if (last > first && grown * static_cast<int64_t>(last + 1 - first) > most_frames_at_once)
          break;
        longest = grown;
        ++last;
      }
      add_sounds({windows.begin() + static_cast<std::ptrdiff_t>(first),
                  windows.begin() + static_cast<std::ptrdiff_t>(last)},
                 longest, sounds);
      first = last;
    }
    return sounds;
  }

 private:
  PackedConv pack(const Vocoder::Convolution& layer) const {
    return pack_conv(layer.weight, layer.bias, hopper_);
  }

  struct Packed {
    PackedConv up;
    std::vector<PackedConv> first, second;  // of all residual blocks
    int64_t rate = 2;
  };

  // What the windows are, in one upload: pointers, codes, first frames, counts, ratios.
  struct Facts {
    at::Tensor pointers, numbers, ratios;
    int64_t batch;
    const int32_t* codes() const { return numbers.const_data_ptr<int32_t>(); }
    const int32_t* first() const { return codes() + batch; }
    const int32_t* counts() const { return codes() + 2 * batch; }
  };
  Facts upload(const std::vector<SoundWindow>& windows) const {
    std::vector<int64_t> pointers;
    std::vector<int32_t> codes, first, counts;
    std::vector<float> ratios;
    for (const SoundWindow& window : windows) {
      pointers.push_back(reinterpret_cast<int64_t>(window.latents.const_data_ptr<float>()));
      const int64_t n = window.latents.size(0), fine = n * vocoder_.frames_a_code;
      codes.push_back(static_cast<int32_t>(n));
      first.push_back(static_cast<int32_t>(window.from(vocoder_)));
      counts.push_back(static_cast<int32_t>(window.to(vocoder_) - window.from(vocoder_)));
      // An interpolation that changes no length copies.
      const bool same = window.last && vocoder_.frames_of(n) == fine;
      ratios.push_back(same ? 1.0f : static_cast<float>(1.0 / vocoder_.frame_rate_ratio));
    }
    std::vector<int32_t> numbers = codes;
    numbers.insert(numbers.end(), first.begin(), first.end());
    numbers.insert(numbers.end(), counts.begin(), counts.end());
    const auto to_device = [](const at::Tensor& host) {
      return host.pin_memory().to(at::kCUDA, /*non_blocking=*/true);
    };
    return {to_device(at::tensor(pointers, at::kLong)), to_device(at::tensor(numbers, at::kInt)),
            to_device(at::tensor(ratios, at::kFloat)), static_cast<int64_t>(windows.size())};
  }

  void add_sounds(const std::vector<SoundWindow>& windows, int64_t frames,
                  std::vector<at::Tensor>& sounds) {
    const auto batch = static_cast<int64_t>(windows.size());
    const Facts facts = upload(windows);
    std::vector<at::Tensor> speakers;
    for (const SoundWindow& window : windows) speakers.push_back(window.speaker.reshape({-1}));
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
    const auto floats = at::TensorOptions(at::kCUDA).dtype(at::kFloat);
    const at::Tensor embeddings =
        at::stack(speakers).pin_memory().to(at::kCUDA, /*non_blocking=*/true);
    const at::Tensor told = at::empty({batch, speaker_bias_.size(0)}, floats);
    launch_told({.batch = static_cast<int>(batch),
                 .inputs = static_cast<int>(embeddings.size(1)),
                 .outputs = static_cast<int>(told.size(1)),
                 .in = embeddings.const_data_ptr<float>(),
                 .weight = speaker_weight_.const_data_ptr<float>(),
                 .bias = speaker_bias_.const_data_ptr<float>(),
                 .out = told.mutable_data_ptr<float>()},
                stream);
    const std::vector<at::Tensor> clip_biases = told.split_with_sizes(speaker_widths_, 1);
    const at::Tensor inputs = at::empty({batch, frames, pre_.channels}, floats.dtype(at::kHalf));
    launch_frames(
        {.batch = static_cast<int>(batch),
         .width = static_cast<int>(windows.front().latents.size(1)),
         .channels = static_cast<int>(pre_.channels),
         .most_frames = static_cast<int>(frames),
         .latents = reinterpret_cast<const float* const*>(facts.pointers.const_data_ptr<int64_t>()),
         .codes = facts.codes(),
         .first = facts.first(),
         .counts = facts.counts(),
         .frames_a_code = static_cast<int>(vocoder_.frames_a_code),
         .inverse_ratio = facts.ratios.const_data_ptr<float>(),
         .half_out = inputs.mutable_data_ptr(),
         .rows = frames},
        stream);

    at::Tensor x = at::empty({batch, frames, pre_.columns}, floats);
    std::vector<at::Tensor> kept = {clip_biases[0].contiguous()};
    ConvCall call = layer(pre_, facts, frames, 1);
    call.half_in = inputs.const_data_ptr();
    call.clip_bias = kept.back().const_data_ptr<float>();
    call.out = x.mutable_data_ptr<float>();
    launch_conv(call, stream);

    int64_t scale = 1;
    for (size_t i = 0; i < stages_.size(); ++i) {
      kept.push_back(clip_biases[i + 1].contiguous());
      x = stage(stages_[i], x, facts, frames, scale, kept.back(), stream);
      scale *= stages_[i].rate;
    }
    const at::Tensor out = at::empty({batch, frames * scale}, floats);
    launch_wave({.batch = static_cast<int>(batch),
                 .channels = static_cast<int>(post_.size(1)),
                 .taps = static_cast<int>(post_.size(0)),
                 .in = x.const_data_ptr<float>(),
                 .rows = frames * scale,
                 .lengths = facts.counts(),
                 .length_scale = static_cast<int>(scale),
                 .most_positions = static_cast<int>(frames * scale),
                 .slope = last_slope,
                 .weight = post_.const_data_ptr<float>(),
                 .bias = post_bias_,
                 .out = out.mutable_data_ptr<float>()},
                stream);
    for (int64_t b = 0; b < batch; ++b) {
      const SoundWindow& window = windows[static_cast<size_t>(b)];
      sounds.push_back(
          out[b].narrow(0, (window.first - window.from(vocoder_)) * scale, window.count * scale));
    }
  }

  // What is the same for all convolutions at `scale` positions a frame.
  ConvCall layer(const PackedConv& packed, const Facts& facts, int64_t frames,
                 int64_t scale) const {
    ConvCall call = packed.call();
    call.clips = static_cast<int>(facts.batch);
    call.lengths = facts.counts();
    call.length_scale = static_cast<int>(scale);
    call.rows = static_cast<int>(frames * scale);
    call.in_stride = frames * scale * packed.channels;
    call.out_stride = frames * scale * packed.columns;
    call.activation = Activation::leaky_relu;
    call.slope = slope;
    return call;
  }

  at::Tensor stage(const Packed& packed, const at::Tensor& in, const Facts& facts, int64_t frames,
                   int64_t scale, const at::Tensor& clip_bias, cudaStream_t stream) const {
    const int64_t width = packed.up.columns / packed.rate, rows = frames * scale * packed.rate;
    const at::Tensor x = at::empty({facts.batch, rows, width}, in.options());
    const at::Tensor sum = at::empty_like(x);
    // Between pairs; two, for a pair that is one kernel does not write where it reads.
    const at::Tensor between[] = {at::empty_like(x), at::empty_like(x)};
    at::Tensor inner;

    ConvCall up = layer(packed.up, facts, frames, scale);
    up.in = in.const_data_ptr<float>();
    up.rate = static_cast<int>(packed.rate);
    up.shift = static_cast<int>(packed.rate / 2);
    ++up.rows;  // the last positions' second tap
    up.clip_bias = clip_bias.const_data_ptr<float>();
    up.out = x.mutable_data_ptr<float>();
    launch_conv(up, stream);

    const size_t pairs = vocoder_.dilations.size();
    for (size_t i = 0; i < packed.first.size(); ++i) {
      const size_t pair = i % pairs;
      const bool ends = pair == pairs - 1;
      const at::Tensor &from = pair == 0 ? x : between[(pair - 1) % 2],
                       &to = ends ? sum : between[pair % 2];
      ConvCall first = layer(packed.first[i], facts, frames, scale * packed.rate);
      first.dilation = static_cast<int>(vocoder_.dilations[pair]);
      first.first *= first.dilation;
      first.in = from.const_data_ptr<float>();
      ConvCall second = layer(packed.second[i], facts, frames, scale * packed.rate);
      second.residual = first.in;
      second.scale = ends ? static_cast<float>(pairs) / static_cast<float>(packed.first.size()) : 1;
      second.accumulate = ends && i >= pairs;
      second.out = to.mutable_data_ptr<float>();
      if (!conv_pair_is_one(first, second)) {
        if (!inner.defined()) inner = at::empty_like(x, in.options().dtype(at::kHalf));
        first.half_out = inner.mutable_data_ptr();
        second.half_in = inner.const_data_ptr();
      }
      launch_conv_pair(first, second, stream);
    }
    return sum;
  }

  const Vocoder& vocoder_;
  const bool hopper_;
  PackedConv pre_;
  std::vector<Packed> stages_;
  std::vector<int64_t> speaker_widths_;
  at::Tensor speaker_weight_, speaker_bias_, post_;
  float post_bias_ = 0;
};

}  // namespace

std::unique_ptr<SoundMaker> make_cuda_sound_maker(const Vocoder& vocoder) {
  return std::make_unique<CudaSoundMaker>(vocoder);
}

}  // namespace tandem
#else
namespace tandem {
std::unique_ptr<SoundMaker> make_cuda_sound_maker(const Vocoder&) {
  throw Error(ErrorKind::device, "this build of tandem has no CUDA");
}
}  // namespace tandem
#endif
