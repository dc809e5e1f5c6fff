#include "models/xtts/normed_vocoder.h"

#include <ATen/ATen.h>

namespace tandem {
namespace {

constexpr std::string_view weight_ending = ".weight";

bool is_normed(const std::string& name) {
  return (name.starts_with("ups.") || name.starts_with("resblocks.")) &&
         name.ends_with(weight_ending);
}

}  // namespace

NormedVocoder::NormedVocoder(const Vocoder& folded) : shape_(folded) {
  shape_.list("",
              [&](const std::string& name, at::Tensor& tensor, const Shape&, const TensorStart&) {
                Entry entry{.name = name, .scale = {}, .value = tensor.detach().clone()};
                if (is_normed(name)) entry.scale = at::norm_except_dim(entry.value, 2, 0);
                entries_.push_back(std::move(entry));
                tensor = at::Tensor();
              });
}

int64_t NormedVocoder::count_parameters(const Vocoder::Size& size) {
  Vocoder sized;
  sized.size = size;
  int64_t count = 0;
  sized.list("", [&](const std::string& name, at::Tensor&, const Shape& shape, const TensorStart&) {
    int64_t numbers = 1;
    for (const int64_t side : shape) numbers *= side;
    count += numbers + (is_normed(name) ? shape[0] : 0);
  });
  return count;
}

void NormedVocoder::visit(const std::string& prefix, const VisitParameter& visit) {
  for (Entry& entry : entries_) {
    if (!entry.scale.defined()) {
      visit(prefix + entry.name, entry.value);
      continue;
    }
    const std::string name =
        prefix + entry.name.substr(0, entry.name.size() - weight_ending.size());
    visit(name + ".parametrizations.weight.original0", entry.scale);
    visit(name + ".parametrizations.weight.original1", entry.value);
  }
}

Vocoder NormedVocoder::fold(at::ScalarType compute) const {
  Vocoder folded = shape_;
  size_t next = 0;
  folded.list("", [&](const std::string&, at::Tensor& tensor, const Shape&, const TensorStart&) {
    const Entry& entry = entries_[next++];
    const at::Tensor weight =
        entry.scale.defined() ? at::_weight_norm(entry.value, entry.scale, 0) : entry.value;
    tensor = weight.to(compute);
  });
  return folded;
}

}  // namespace tandem
