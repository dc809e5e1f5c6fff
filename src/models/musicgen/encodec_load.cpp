#include <fmt/format.h>

#include <cmath>

#include "models/musicgen/encodec.h"
#include "models/musicgen/music_parameters.h"

namespace tandem {
namespace {

// Variance stays about one through an ELU and a convolution.
TensorStart start_of(int64_t inputs, double gain) {
  return {.deviation = std::sqrt(gain / static_cast<double>(inputs))};
}

struct Lister {
  const ListTensor& list;
  std::string layers;  // `audio_encoder.decoder.layers.`
  int64_t place = 0;   // in the list of layers, activations counted

  std::string next(int64_t skipped = 0) {
    place += skipped;
    return fmt::format("{}{}", layers, place++);
  }
  void conv(const std::string& name, EncodecConv& conv, int64_t in, int64_t out, int64_t kernel,
            double gain = 1.5) const {
    list(name + ".conv.weight", conv.weight, {out, in, kernel}, start_of(in * kernel, gain));
    list(name + ".conv.bias", conv.bias, {out}, {});
  }
  void transposed(const std::string& name, EncodecConv& conv, int64_t in, int64_t out) const {
    // Each sample is the sum of kernel / stride = 2 taps.
    list(name + ".conv.weight", conv.weight, {in, out, 2 * conv.stride}, start_of(2 * in, 1.5));
    list(name + ".conv.bias", conv.bias, {out}, {});
  }
  void lstm(const std::string& name, EncodecLstm& lstm, int64_t width, int64_t layers_of_it) const {
    lstm.layers.resize(static_cast<size_t>(layers_of_it));
    for (size_t i = 0; i < lstm.layers.size(); ++i) {
      EncodecLstm::Layer& layer = lstm.layers[i];
      const auto listed = [&](const char* what, at::Tensor& tensor, Shape shape,
                              TensorStart start) {
        list(fmt::format("{}.lstm.{}_l{}", name, what, i), tensor, shape, start);
      };
      listed("weight_ih", layer.input, {4 * width, width}, start_of(width, 1));
      listed("weight_hh", layer.hidden, {4 * width, width}, start_of(width, 0.3));
      listed("bias_ih", layer.input_bias, {4 * width}, {});
      listed("bias_hh", layer.hidden_bias, {4 * width}, {});
    }
  }
  void residuals(const EncodecSize& size, std::vector<EncodecResidual>& blocks, int64_t width) {
    blocks.resize(static_cast<size_t>(size.residual_layers));
    int64_t dilation = 1;
    for (EncodecResidual& block : blocks) {
      const std::string name = next();
      const int64_t inner = width / size.compress;
      block.convs.resize(2);
      block.convs[0].dilation = dilation;
      conv(name + ".block.1", block.convs[0], width, inner, size.residual_kernel);
      conv(name + ".block.3", block.convs[1], inner, width, 1, 0.3);
      if (size.shortcut_conv) conv(name + ".shortcut", block.shortcut, width, width, 1, 1);
      dilation *= size.dilation_growth;
    }
  }
};

}  // namespace

void Encodec::list(const std::string& prefix, const ListTensor& list, bool with_encoder) {
  int64_t width = size.filters << size.ratios.size();
  Lister out{list, prefix + "decoder.layers."};
  out.conv(out.next(), decoder.first, size.hidden, width, size.kernel, 1);
  out.lstm(out.next(), decoder.lstm, width, size.lstm_layers);
  decoder.stages.resize(size.ratios.size());
  for (size_t i = 0; i < decoder.stages.size(); ++i, width /= 2) {
    Stage& stage = decoder.stages[i];
    stage.scale.stride = size.ratios[i];
    out.transposed(out.next(1), stage.scale, width, width / 2);
    out.residuals(size, stage.residuals, width / 2);
  }
  // Sound well inside -1 .. 1.
  out.conv(out.next(1), decoder.last, size.filters, size.channels, size.last_kernel, 0.02);

  codebooks.resize(static_cast<size_t>(size.codebooks));
  for (size_t q = 0; q < codebooks.size(); ++q) {
    // Later codebooks correct the earlier ones.
    list(fmt::format("{}quantizer.layers.{}.codebook.embed", prefix, q), codebooks[q],
         {size.codebook_size, size.codebook_width},
         {.deviation = std::pow(0.6, static_cast<double>(q)), .parameter = false});
  }
  if (!with_encoder) return;

  width = size.filters;
  Lister in{list, prefix + "encoder.layers."};
  in.conv(in.next(), encoder.first, size.channels, width, size.kernel, 100);
  encoder.stages.resize(size.ratios.size());
  for (size_t i = 0; i < encoder.stages.size(); ++i, width *= 2) {
    Stage& stage = encoder.stages[i];
    in.residuals(size, stage.residuals, width);
    stage.scale.stride = size.ratios[size.ratios.size() - 1 - i];
    in.conv(in.next(1), stage.scale, width, 2 * width, 2 * stage.scale.stride);
  }
  in.lstm(in.next(), encoder.lstm, width, size.lstm_layers);
  in.conv(in.next(1), encoder.last, width, size.hidden, size.last_kernel);
}

Encodec Encodec::load(Weights& weights, const std::string& prefix, const EncodecSize& size,
                      bool with_encoder) {
  Encodec codec;
  codec.size = size;
  codec.list(prefix, load_as_configured(weights), with_encoder);
  return codec;
}

Encodec Encodec::make(const EncodecSize& size, uint64_t seed) {
  Encodec codec;
  codec.size = size;
  codec.list("audio_encoder.", draw_repeating(seed));
  return codec;
}

void Encodec::visit(const std::string& prefix, const VisitParameter& visit) {
  list(prefix, pass_to(visit));
}

}  // namespace tandem
