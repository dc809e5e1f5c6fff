#include "checkpoint/weights.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

at::Tensor as_float(const at::Tensor& tensor) {
  return at::isFloatingType(tensor.scalar_type()) ? tensor.to(at::kFloat).contiguous()
                                                  : tensor.contiguous();
}

}  // namespace

at::Tensor fold_weight_norm(const at::Tensor& g, const at::Tensor& v) {
  const at::Tensor rows = v.to(at::kFloat);
  std::vector<int64_t> column(static_cast<size_t>(v.dim()), 1);
  column[0] = v.size(0);
  const at::Tensor norm = rows.reshape({v.size(0), -1}).norm(2, {1}).reshape(column);
  const at::Tensor scale = g.to(at::kFloat).reshape(column) / norm;
  return rows * at::where(norm == 0, at::zeros_like(scale), scale);
}

Weights::Weights(TensorFile& file, const std::string& prefix)
    : source_(file.path().string()), file_(&file) {
  for (const TensorEntry& entry : file.entries()) {
    if (!entry.name.starts_with(prefix)) continue;
    places_.emplace(entry.name.substr(prefix.size()), Place{entry.name, entry.shape});
  }
}

Weights::Weights(std::map<std::string, at::Tensor> tensors, std::string source)
    : source_(std::move(source)), in_memory_(std::move(tensors)) {
  for (const auto& [name, tensor] : in_memory_)
    places_.emplace(name, Place{name, tensor.sizes().vec()});
}

bool Weights::has(const std::string& name) const { return places_.count(name) != 0; }

std::vector<int64_t> Weights::shape(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? std::vector<int64_t>() : found->second.shape;
}

at::Tensor Weights::take(const std::string& name) {
  if (!has(name)) {
    if (std::find(missing_.begin(), missing_.end(), name) == missing_.end())
      missing_.push_back(name);
    return at::Tensor();
  }
  return take_if_there(name);
}

at::Tensor Weights::take_if_there(const std::string& name) {
  const auto found = places_.find(name);
  if (found == places_.end()) return at::Tensor();
  taken_.insert(name);
  const std::string& place = found->second.name;
  return as_float(file_ ? file_->read(place) : in_memory_.at(place));
}

at::Tensor Weights::take_folded(const std::string& name) {
  if (has(name + ".weight")) return take(name + ".weight");
  const bool old = has(name + ".weight_g") || has(name + ".weight_v");
  const bool parametrized = has(name + ".parametrizations.weight.original0") ||
                            has(name + ".parametrizations.weight.original1");
  if (!old && !parametrized) return take(name + ".weight");
  const at::Tensor g = take(name + (old ? ".weight_g" : ".parametrizations.weight.original0"));
  const at::Tensor v = take(name + (old ? ".weight_v" : ".parametrizations.weight.original1"));
  if (!g.defined() || !v.defined()) return at::Tensor();
  if (v.dim() == 0 || g.numel() != v.size(0)) {
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}`: the weight norm of `{}` has {} scales for {} rows", source_,
                            name, g.numel(), v.dim() == 0 ? 0 : v.size(0)));
  }
  return fold_weight_norm(g, v);
}

std::vector<std::string> Weights::untaken() const {
  std::vector<std::string> names;
  for (const auto& [name, place] : places_) {
    if (!taken_.count(name)) names.push_back(name);
  }
  return names;
}

void Weights::require_complete(const std::string& what) const {
  if (missing_.empty()) return;
  constexpr size_t named = 8;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(named, missing_.size()); ++i)
    names.push_back("`" + missing_[i] + "`");
  const std::string more =
      missing_.size() > named ? fmt::format(" and {} more", missing_.size() - named) : "";
  throw Error(ErrorKind::corrupt, fmt::format("`{}` holds no {}: {}{} missing", source_, what,
                                              join(names, ", "), more));
}

}  // namespace tandem
