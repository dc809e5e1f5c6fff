#include "device/recorded_inputs.h"

#include <ATen/record_function.h>

namespace tandem {
namespace {

// LibTorch's header checks a flag in `inputs()` that only a debug build of LibTorch sets, so that
// it throws here. An explicit instantiation may name the private member behind it.
c10::ArrayRef<const c10::IValue> private_inputs(const at::RecordFunction& function);
template <auto Member>
struct Inputs {
  friend c10::ArrayRef<const c10::IValue> private_inputs(const at::RecordFunction& function) {
    return function.*Member;
  }
};
template struct Inputs<&at::RecordFunction::inputs_>;

}  // namespace

c10::ArrayRef<const c10::IValue> inputs_of(const at::RecordFunction& function) {
  return private_inputs(function);
}

}  // namespace tandem
