#include "nn/checksum.h"

#include <ATen/Parallel.h>

#include <cstring>

#include "nn/checksum_words.h"
#include "tandem/error.h"

namespace tandem {
namespace {

uint64_t checksum_on_host(const void* data, int64_t bytes) {
  const auto* begin = static_cast<const unsigned char*>(data);
  const int64_t words = (bytes + 3) / 4;
  const auto sum_range = [&](int64_t from, int64_t to, uint64_t sum) {
    for (int64_t i = from; i < to; ++i) {
      uint32_t word = 0;
      std::memcpy(&word, begin + 4 * i, static_cast<size_t>(std::min<int64_t>(4, bytes - 4 * i)));
      sum += mixed_word(static_cast<uint64_t>(i), word);
    }
    return sum;
  };
  // Addition wraps and commutes, so the split over threads does not show in the result.
  return at::parallel_reduce(0, words, 1 << 16, uint64_t{0}, sum_range, std::plus<uint64_t>());
}

}  // namespace

at::Tensor checksum(const at::Tensor& tensor) {
  at::NoGradGuard no_grad;
  const at::Tensor whole = tensor.contiguous();
  at::Tensor sum = at::zeros({}, whole.options().dtype(at::kLong).requires_grad(false));
  const auto bytes = static_cast<int64_t>(whole.nbytes());
  if (whole.is_cuda()) {
#ifdef TANDEM_WITH_CUDA
    checksum_on_device(whole.data_ptr(), bytes, sum.data_ptr());
    return sum;
#endif
  }
  if (!whole.is_cpu())
    throw Error(ErrorKind::internal, "checksum of a tensor on an unknown device");
  const uint64_t value = checksum_on_host(whole.data_ptr(), bytes);
  std::memcpy(sum.data_ptr(), &value, sizeof value);
  return sum;
}

at::Tensor checksum(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> sums;
  for (const at::Tensor& tensor : tensors) sums.push_back(checksum(tensor));
  return checksum(at::stack(sums));
}

}  // namespace tandem
