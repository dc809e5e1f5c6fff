// HiFi-GAN's discriminators: five that look at a wave folded by a period, three that look at it at
// full, half and quarter rate. Only training needs them. Names and shapes are those of coqui-tts
// (`mpd.discriminators.0.convs.0.…`), all layers weight-normalised.
//
// coqui-tts gives the first scale spectral norm. Its running vectors change with every forward
// pass, which replicas and recomputed steps would have to share; weight norm keeps the same
// function for given weights and needs no state.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/xtts/xtts_parameters.h"

namespace tandem {

// What one discriminator saw: the output of each layer, the last being its scores. Rows of a
// period's maps are (row of the batch, column of the folded wave).
struct Judgement {
  struct Map {
    at::Tensor values;            // [B * columns, channels, places]
    int64_t samples_a_place = 1;  // place p begins at sample p * samples_a_place of the wave
  };
  std::vector<std::vector<Map>> maps;  // of each discriminator
};
// Of `rows` rows from `first` on, out of a judgement of `all`.
Judgement part_of(const Judgement& judgement, int64_t first, int64_t rows, int64_t all);

struct Discriminators {
  struct Size {
    int64_t width = 1024;  // of the widest layers; a multiple of 32
    std::vector<int64_t> periods = {2, 3, 5, 7, 11};
    int64_t scales = 3;
  };
  struct Layer {
    at::Tensor scale, direction, bias;  // weight = scale * direction / |direction|
    int64_t stride = 1, groups = 1;
  };
  struct Discriminator {
    int64_t period = 1;  // 1: a scale
    int64_t halved = 0;  // times
    std::vector<Layer> layers;
  };
  Size size;
  std::vector<Discriminator> discriminators;

  // On the device of the open DeviceScope, drawn from (seed, name). Throws Error(internal) for a
  // width that is no multiple of 32.
  static Discriminators make(const Size& size, uint64_t seed);
  void visit(const std::string& prefix, const VisitParameter& visit);
  void list(const std::string& prefix, const ListTensor& tensor);  // of this `size`

  // The layers' weights in type `compute`, one list a discriminator, with gradients where the
  // parameters want them. Made once for all passes between two updates.
  struct Folded {
    std::vector<std::vector<at::Tensor>> weights, biases;
  };
  Folded fold(at::ScalarType compute) const;
  // waves [B, samples] float32. Products in the type of the weights. `by_products`: convolutions
  // are matrix products (nn/flat_conv.h) and maps have channels last in memory; else they are
  // LibTorch's own.
  Judgement judge(const at::Tensor& waves, const Folded& folded, bool by_products = false) const;
};

}  // namespace tandem
