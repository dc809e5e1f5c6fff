#include "observe/profile_work.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <utility>

namespace tandem {
namespace {

using Values = c10::ArrayRef<const c10::IValue>;

constexpr std::pair<std::string_view, WorkRule> rules[] = {
    {"mm", {WorkKind::product, 0}},
    {"mv", {WorkKind::product, 0}},
    {"addmm", {WorkKind::product, 1}},
    {"addmm_", {WorkKind::product, 1}},
    {"addmv", {WorkKind::product, 1}},
    {"bmm", {WorkKind::batched_product, 0}},
    {"baddbmm", {WorkKind::batched_product, 1}},
    {"baddbmm_", {WorkKind::batched_product, 1}},
    {"convolution", {WorkKind::convolution, 0}},
    {"convolution_backward", {WorkKind::convolution_backward, 1}},
    {"_scaled_dot_product_flash_attention", {WorkKind::attention, 0}},
    {"_scaled_dot_product_flash_attention_for_cpu", {WorkKind::attention, 0}},
    {"_scaled_dot_product_efficient_attention", {WorkKind::attention, 0}},
    {"_scaled_dot_product_cudnn_attention", {WorkKind::attention, 0}},
    {"_scaled_dot_product_flash_attention_backward", {WorkKind::attention_backward, 1}},
    {"_scaled_dot_product_flash_attention_for_cpu_backward", {WorkKind::attention_backward, 1}},
    {"_scaled_dot_product_efficient_attention_backward", {WorkKind::attention_backward, 1}},
    {"_scaled_dot_product_cudnn_attention_backward", {WorkKind::attention_backward, 1}},
};

constexpr std::string_view moves_nothing[] = {"view",
                                              "_unsafe_view",
                                              "reshape",
                                              "t",
                                              "transpose",
                                              "permute",
                                              "expand",
                                              "expand_as",
                                              "as_strided",
                                              "select",
                                              "slice",
                                              "narrow",
                                              "unsqueeze",
                                              "squeeze",
                                              "detach",
                                              "detach_",
                                              "alias",
                                              "split",
                                              "chunk",
                                              "unbind",
                                              "unfold",
                                              "view_as",
                                              "flatten",
                                              "unflatten",
                                              "empty",
                                              "empty_like",
                                              "empty_strided",
                                              "new_empty",
                                              "resize_",
                                              "set_",
                                              "lift_fresh",
                                              "result_type",
                                              "_reshape_alias",
                                              "swapaxes",
                                              "movedim",
                                              "diagonal",
                                              "item",
                                              "is_nonzero",
                                              "contiguous",
                                              "record_stream",
                                              "split_with_sizes",
                                              "_local_scalar_dense",
                                              "resolve_conj",
                                              "resolve_neg"};

const at::Tensor* tensor_at(Values values, size_t at) {
  if (at >= values.size() || !values[at].isTensor()) return nullptr;
  const at::Tensor& tensor = values[at].toTensor();
  return tensor.defined() ? &tensor : nullptr;
}

double size_of(const at::Tensor& tensor, int64_t from_last) {
  return static_cast<double>(tensor.size(tensor.dim() - from_last));
}

double number_at(Values values, size_t at) {
  return at < values.size() && values[at].isDouble() ? values[at].toDouble() : 0;
}

bool truth_at(Values values, size_t at) {
  return at < values.size() && values[at].isBool() && values[at].toBool();
}

// Of an output element: the weights of one filter. Of a transposed one, of an input element.
double convolution_flops(Values inputs, size_t input, size_t transposed,
                         const at::Tensor* gradient) {
  const at::Tensor* x = tensor_at(inputs, input);
  const at::Tensor* weight = tensor_at(inputs, input + 1);
  if (!x || !weight || weight->dim() < 3) return 0;
  const double filter = static_cast<double>(weight->numel()) /
                        static_cast<double>(std::max<int64_t>(1, weight->size(0)));
  if (truth_at(inputs, transposed)) return 2 * filter * static_cast<double>(x->numel());
  if (gradient) return 2 * filter * static_cast<double>(gradient->numel());
  // The output's length follows from stride, padding and dilation.
  double outputs = static_cast<double>(x->size(0)) * static_cast<double>(weight->size(0));
  for (int64_t i = 2; i < weight->dim(); ++i) {
    const auto option = [&](size_t at, int64_t otherwise) {
      if (at >= inputs.size() || !inputs[at].isIntList()) return otherwise;
      const auto list = inputs[at].toIntVector();
      return list.empty() ? otherwise : list[std::min(list.size() - 1, static_cast<size_t>(i - 2))];
    };
    const int64_t stride = std::max<int64_t>(1, option(input + 3, 1)),
                  padding = option(input + 4, 0), dilation = option(input + 5, 1);
    const int64_t reach = dilation * (weight->size(i) - 1) + 1;
    outputs *=
        static_cast<double>(std::max<int64_t>(0, (x->size(i) + 2 * padding - reach) / stride + 1));
  }
  return 2 * filter * outputs;
}

// Two products of [Tq, D] x [D, Tk] a head; of a causal one half is skipped.
double attention_flops(Values inputs, size_t first) {
  const at::Tensor* query = tensor_at(inputs, first);
  const at::Tensor* key = tensor_at(inputs, first + 1);
  if (!query || !key || query->dim() < 3 || key->dim() < 3) return 0;
  bool causal = false;  // the one truth value among the first eight inputs
  for (size_t i = first; i < std::min<size_t>(inputs.size(), first + 10); ++i)
    causal = causal || truth_at(inputs, i);
  const double products = 4 * static_cast<double>(query->numel()) * size_of(*key, 2);
  return causal ? products / 2 : products;
}

double tensor_bytes(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return 0;
  const double all = static_cast<double>(tensor.numel()) * static_cast<double>(tensor.itemsize());
  return std::min(all, static_cast<double>(tensor.storage().nbytes()));
}

}  // namespace

WorkRule work_rule(std::string_view name) {
  if (name.starts_with("aten::")) name.remove_prefix(6);
  if (name.starts_with("tandem::")) return {.kind = WorkKind::noted};
  for (const auto& [known, rule] : rules)
    if (name == known) return rule;
  if (std::ranges::find(moves_nothing, name) != std::end(moves_nothing))
    return {.kind = WorkKind::none};
  return {};
}

double flops_of(const WorkRule& rule, Values inputs) {
  const auto first = static_cast<size_t>(rule.first);
  switch (rule.kind) {
    case WorkKind::bytes:
    case WorkKind::none: return 0;
    case WorkKind::noted: return number_at(inputs, 0);
    case WorkKind::product: {
      const at::Tensor* a = tensor_at(inputs, first);
      const at::Tensor* b = tensor_at(inputs, first + 1);
      if (!a || !b || a->dim() != 2) return 0;
      return 2 * static_cast<double>(a->numel()) * (b->dim() == 2 ? size_of(*b, 1) : 1);
    }
    case WorkKind::batched_product: {
      const at::Tensor* a = tensor_at(inputs, first);
      const at::Tensor* b = tensor_at(inputs, first + 1);
      if (!a || !b || a->dim() != 3 || b->dim() != 3) return 0;
      return 2 * static_cast<double>(a->numel()) * size_of(*b, 1);
    }
    case WorkKind::convolution: return convolution_flops(inputs, 0, 6, nullptr);
    case WorkKind::convolution_backward: {  // of the input and of the weight
      const at::Tensor* gradient = tensor_at(inputs, 0);
      return gradient ? 2 * convolution_flops(inputs, 1, 7, gradient) : 0;
    }
    case WorkKind::attention: return attention_flops(inputs, first);
    // Five products instead of two.
    case WorkKind::attention_backward: return 2.5 * attention_flops(inputs, first);
  }
  return 0;
}

double noted_bytes(Values inputs) { return number_at(inputs, 1); }

double bytes_of(Values values) {
  double bytes = 0;
  for (const c10::IValue& value : values) {
    if (value.isTensor()) {
      bytes += tensor_bytes(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) bytes += tensor_bytes(tensor);
    }
  }
  return bytes;
}

}  // namespace tandem
