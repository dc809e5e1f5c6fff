// How a voice's codes are used, of counts that add up over batches and replicas. On any device;
// nothing here waits for it.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>

namespace tandem {

// How often each code occurs: codes of any shape, below 0: not counted -> [size] float32.
at::Tensor count_codes(const at::Tensor& codes, int64_t size);
// Of such counts, [] float32: the share of codes that occur; the number of equally frequent codes
// that would be as varied. Both 0 where nothing was counted.
at::Tensor code_usage(const at::Tensor& counts);
at::Tensor code_perplexity(const at::Tensor& counts);

}  // namespace tandem
