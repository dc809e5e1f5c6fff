// Tensors taken by name from an open file while a model is built. What is missing is remembered, so
// that one error lists all of it; what nobody took is known afterwards.
#pragma once

#include <ATen/core/TensorBody.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/tensor_file.h"

namespace tandem {

// g * v / |v|, the norm over all dimensions but the first; a row of zeros stays one. g has as many
// numbers as v has rows. float32.
at::Tensor fold_weight_norm(const at::Tensor& g, const at::Tensor& v);

class Weights {
 public:
  // All entries of `file` whose name starts with `prefix`, under the rest of their name. The file
  // must outlive this.
  Weights(TensorFile& file, const std::string& prefix);
  // Tensors already in memory, for tests and models made here.
  explicit Weights(std::map<std::string, at::Tensor> tensors, std::string source = "memory");

  bool has(const std::string& name) const;
  std::vector<int64_t> shape(const std::string& name) const;  // empty when it is not there
  // float32, contiguous, on the CPU (integers stay integers); undefined, and remembered, when it is
  // not there.
  at::Tensor take(const std::string& name);
  // The same when it may be missing.
  at::Tensor take_if_there(const std::string& name);
  // The weight of a layer with weight norm, folded: `name`.weight itself, or `name`.weight_g and
  // .weight_v, or `name`.parametrizations.weight.original0 and original1. The norm is over all
  // dimensions but the first.
  at::Tensor take_folded(const std::string& name);

  const std::string& source() const { return source_; }
  const std::vector<std::string>& missing() const { return missing_; }
  std::vector<std::string> untaken() const;
  // Throws Error(corrupt) "`file` holds no <what>: `a`, `b` and 7 more missing" when any is.
  void require_complete(const std::string& what) const;

 private:
  struct Place {
    std::string name;  // in the file
    std::vector<int64_t> shape;
  };
  std::string source_;
  TensorFile* file_ = nullptr;
  std::map<std::string, Place> places_;
  std::map<std::string, at::Tensor> in_memory_;
  std::set<std::string> taken_;
  std::vector<std::string> missing_;
};

}  // namespace tandem
