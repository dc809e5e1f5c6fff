// How much work an operation is, told from its inputs and outputs.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <string_view>

namespace tandem {

enum class WorkKind : uint8_t {
  bytes,  // what it reads and writes
  none,   // views and allocations: nothing is moved
  noted,  // told by who launches it (nn/work_note.h)
  product,
  batched_product,
  convolution,
  convolution_backward,
  attention,
  attention_backward,
};

struct WorkRule {
  WorkKind kind = WorkKind::bytes;
  int first = 0;  // of its inputs, the first of the two that are multiplied
};
// By the name of an operation: "aten::addmm".
WorkRule work_rule(std::string_view name);

// Floating-point operations, a multiplication and an addition counting as two; 0: none known.
// `inputs` are those of the call.
double flops_of(const WorkRule& rule, c10::ArrayRef<const c10::IValue> inputs);
// Bytes of the tensors in `values`; what is broadcast counts once.
double bytes_of(c10::ArrayRef<const c10::IValue> values);
// Of noted work.
double noted_bytes(c10::ArrayRef<const c10::IValue> inputs);

}  // namespace tandem
