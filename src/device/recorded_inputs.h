// What a recorded operation was called with, for callbacks of RecordFunction as it starts: once it
// has run the values are gone.
#pragma once

#include <ATen/core/ivalue.h>

namespace at {
struct RecordFunction;
}

namespace tandem {

c10::ArrayRef<const c10::IValue> inputs_of(const at::RecordFunction& function);

}  // namespace tandem
