// Matrix products in bfloat16, or of 8-bit floats, through cuBLASLt, told row by row:
//
//   out[rows, columns] (+)= left[rows, inner] right[inner, columns]
//
// `left_turned` means that left is stored [inner, rows], `right_turned` that right is stored
// [columns, inner]. Out is bfloat16 or float32, and may be added to.
//
// Which of cuBLASLt's algorithms is fastest is measured by `tune`; shapes that were not measured
// take the choice of the next larger measured number of places, or cuBLASLt's own first choice. The
// sums of different algorithms differ in their last bits, so only an untuned Products gives the
// same bits in every run of the program; within one run the same call always gives the same bits.
#pragma once

#ifdef TANDEM_WITH_CUDA
#include <ATen/core/TensorBody.h>
#include <cuda_runtime_api.h>

#include <memory>

namespace tandem {

struct Product {
  const void *left = nullptr, *right = nullptr;
  void* out = nullptr;
  int64_t rows = 0, columns = 0, inner = 0;
  bool left_turned = false, right_turned = false;
  int64_t left_stride = 0, right_stride = 0, out_stride = 0;  // 0: without gaps
  bool to_float = false;                                      // out is float32
  bool adds = false;                                          // to what is in out
  const void* added = nullptr;                                // like out: out = added + left right
  const void* bias = nullptr;                                 // [columns], added to every row
  // With a bias: out is the GELU (tanh) of the result, which is written here itself, without gaps.
  void* before_gelu = nullptr;
  // Both given: left and right are 8-bit floats (fp8.h), left [rows, inner] with a scale a row,
  // right turned, [columns, inner], with a scale a column.
  const float *left_scales = nullptr, *right_scales = nullptr;
};

class Products {
 public:
  Products();  // on the current device
  ~Products();

  // Throws Error(device) where cuBLASLt refuses. All share one work space: one stream at a time.
  void run(const Product& product, cudaStream_t stream);
  // Measures the algorithms for this product. Writes to `out`; waits for the device. Milliseconds
  // of the fastest; 0: there is none.
  float tune(const Product& product, cudaStream_t stream);

  uint64_t workspace_bytes() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tandem
#endif
