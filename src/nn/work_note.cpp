#include "nn/work_note.h"

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <array>

namespace tandem {

// Heard as an operation of LibTorch whose inputs are the two figures.
struct WorkNote::Told {
  Told(at::StepCallbacks&& listeners, double flops, double bytes)
      : figures{c10::IValue(flops), c10::IValue(bytes)}, range(std::move(listeners)) {}
  std::array<c10::IValue, 2> figures;
  at::RecordFunction range;
};

WorkNote::WorkNote(const char* name, double flops, double bytes) {
  auto listeners = at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION);
  if (!listeners) return;
  told_ = new Told(std::move(*listeners), flops, bytes);
  told_->range.before(name, c10::ArrayRef<const c10::IValue>(told_->figures.data(), 2));
}

WorkNote::~WorkNote() { delete told_; }

bool WorkNote::heard() {
  return at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION).has_value();
}

}  // namespace tandem
