#include "models/musicgen/encodec.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "tandem/error.h"

namespace tandem {
namespace {

at::Tensor padded(const at::Tensor& x, int64_t left, int64_t right, const std::string& mode) {
  if (mode != "reflect") return at::pad(x, {left, right}, mode);
  // A reflection needs more samples than it adds; what is too short gets zeros behind it first,
  // and as many samples are cut off again.
  const int64_t short_of = std::max<int64_t>(0, std::max(left, right) - x.size(-1) + 1);
  const at::Tensor enough = short_of > 0 ? at::constant_pad_nd(x, {0, short_of}) : x;
  const at::Tensor wide = at::reflection_pad1d(enough, {left, right});
  return wide.narrow(-1, 0, wide.size(-1) - short_of);
}

class Layers {
 public:
  explicit Layers(const EncodecSize& size) : size_(size) {}

  // As many frames out as ceil(samples / stride).
  at::Tensor conv(const at::Tensor& x, const EncodecConv& conv) const {
    const int64_t reach = (conv.weight.size(2) - 1) * conv.dilation + 1;
    const int64_t fixed = reach - conv.stride, length = x.size(-1);
    const int64_t extra = (length + conv.stride - 1) / conv.stride * conv.stride - length;
    const int64_t right = size_.causal ? 0 : fixed / 2;
    return at::conv1d(padded(x, fixed - right, right + extra, size_.padding), conv.weight,
                      conv.bias, conv.stride, at::IntArrayRef{0}, conv.dilation);
  }

  // Exactly stride times as many samples; an odd rest of the trimming falls to the left.
  at::Tensor transposed(const at::Tensor& x, const EncodecConv& conv) const {
    const at::Tensor wide = at::conv_transpose1d(x, conv.weight, conv.bias, conv.stride);
    const int64_t fixed = conv.weight.size(2) - conv.stride;
    const int64_t right =
        size_.causal
            ? static_cast<int64_t>(std::ceil(static_cast<double>(fixed) * size_.trim_right))
            : fixed / 2;
    return wide.narrow(-1, fixed - right, wide.size(-1) - fixed);
  }

  at::Tensor lstm(const at::Tensor& x, const EncodecLstm& lstm) const {
    const at::Tensor steps = x.permute({2, 0, 1});  // [frames, B, C]
    std::vector<at::Tensor> weights;
    for (const EncodecLstm::Layer& layer : lstm.layers)
      for (const at::Tensor& part :
           {layer.input, layer.hidden, layer.input_bias, layer.hidden_bias})
        weights.push_back(part);
    const auto count = static_cast<int64_t>(lstm.layers.size());
    const at::Tensor still = at::zeros({count, steps.size(1), steps.size(2)}, steps.options());
    const at::Tensor out = std::get<0>(at::lstm(steps, {still, still}, weights,
                                                /*has_biases=*/true, count, /*dropout=*/0.0,
                                                /*train=*/false, /*bidirectional=*/false,
                                                /*batch_first=*/false));
    return (out + steps).permute({1, 2, 0});
  }

  at::Tensor residuals(at::Tensor x, const std::vector<EncodecResidual>& blocks) const {
    for (const EncodecResidual& block : blocks) {
      at::Tensor inner = x;
      for (const EncodecConv& layer : block.convs) inner = conv(at::elu(inner), layer);
      x = (block.shortcut.weight.defined() ? conv(x, block.shortcut) : x) + inner;
    }
    return x;
  }

 private:
  const EncodecSize& size_;
};

at::Tensor decode_together(const Encodec& codec, const at::Tensor& codes) {
  at::Tensor x;
  for (int64_t k = 0; k < codes.size(1); ++k) {
    const at::Tensor part =
        at::embedding(codec.codebooks[static_cast<size_t>(k)], codes.select(1, k));
    x = k == 0 ? part : x + part;
  }
  const Layers layers(codec.size);
  x = layers.lstm(layers.conv(x.transpose(1, 2), codec.decoder.first), codec.decoder.lstm);
  for (const Encodec::Stage& stage : codec.decoder.stages)
    x = layers.residuals(layers.transposed(at::elu(x), stage.scale), stage.residuals);
  return layers.conv(at::elu(x), codec.decoder.last);
}

// One clip at a time on the CPU, where the batch's size changes the order of sums.
template <class Work>
at::Tensor each_alone(const at::Tensor& batch, const Work& work) {
  if (!batch.is_cpu() || batch.size(0) <= 1) return work(batch);
  std::vector<at::Tensor> parts;
  for (int64_t i = 0; i < batch.size(0); ++i) parts.push_back(work(batch.narrow(0, i, 1)));
  return at::cat(parts);
}

void demand(bool right, const std::string& sentence) {
  if (!right) throw Error(ErrorKind::internal, sentence);
}

}  // namespace

at::Tensor Encodec::decode(const at::Tensor& codes) const {
  const at::NoGradGuard no_grad;
  demand(codes.dim() == 3 && codes.size(1) >= 1 && codes.size(2) >= 1 &&
             codes.size(1) <= static_cast<int64_t>(codebooks.size()),
         fmt::format("codes to decode are [clips, 1 to {} codebooks, frames]", codebooks.size()));
  return each_alone(codes, [&](const at::Tensor& some) { return decode_together(*this, some); });
}

at::Tensor Encodec::features(const at::Tensor& sound) const {
  const at::NoGradGuard no_grad;
  demand(encoder.first.weight.defined(), "the codec was loaded without its encoder");
  demand(sound.dim() == 3 && sound.size(1) == size.channels && sound.size(2) >= 1,
         fmt::format("sound to encode is [clips, {}, samples]", size.channels));
  const Layers layers(size);
  return each_alone(sound, [&](const at::Tensor& some) {
    at::Tensor x = layers.conv(some, encoder.first);
    for (const Stage& stage : encoder.stages)
      x = layers.conv(at::elu(layers.residuals(x, stage.residuals)), stage.scale);
    x = layers.lstm(x, encoder.lstm);
    return layers.conv(at::elu(x), encoder.last).transpose(1, 2);
  });
}

at::Tensor Encodec::encode(const at::Tensor& sound, int64_t wanted) const {
  const at::NoGradGuard no_grad;
  demand(wanted >= 1 && wanted <= static_cast<int64_t>(codebooks.size()),
         fmt::format("the codec has {} codebooks, not {}", codebooks.size(), wanted));
  return each_alone(features(sound), [&](at::Tensor rest) {
    std::vector<at::Tensor> codes;
    for (int64_t k = 0; k < wanted; ++k) {
      const at::Tensor& book = codebooks[static_cast<size_t>(k)];
      const at::Tensor flat = rest.reshape({-1, rest.size(2)});
      // Squared distances, rounded as transformers rounds them.
      const at::Tensor distance =
          flat.pow(2).sum(1, true) - 2 * at::matmul(flat, book.t()) + book.t().pow(2).sum(0, true);
      codes.push_back(std::get<1>((-distance).max(-1)).view({rest.size(0), rest.size(1)}));
      rest = rest - at::embedding(book, codes.back());
    }
    return at::stack(codes, 1);
  });
}

}  // namespace tandem
