#include "nn/dropout.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "nn/draw_bits.h"
#include "nn/dropout_launch.h"
#include "tandem/error.h"
#include "util/counted_random.h"

namespace tandem {

at::Tensor dropout_factors(const CountedDropout& dropout, const at::Tensor& like, uint64_t branch) {
  at::Tensor factors =
      at::empty(like.sizes(), like.options().requires_grad(false).dtype(at::kFloat));
  const uint64_t key = counted_draw(dropout.seed, "dropout", branch, 0);
  // Drawn bits below this are dropped.
  const auto limit = static_cast<uint32_t>(dropout.share * 4294967296.0);
  const auto kept = static_cast<float>(1 / (1 - dropout.share));
  const at::Tensor rows = dropout.rows.defined() ? dropout.rows.contiguous() : at::Tensor();
  const int64_t each = factors.numel() / (rows.defined() ? std::max<int64_t>(1, rows.numel()) : 1);
  if (like.is_cuda()) {
#ifdef TANDEM_WITH_CUDA
    dropout_factors_cuda(factors, {key, dropout.step, rows, each}, limit, kept);
#else
    throw Error(ErrorKind::internal, "this build has no CUDA, but a tensor is on a GPU");
#endif
  } else {
    const uint64_t now = draw_bits(key, static_cast<uint64_t>(dropout.step.item<int64_t>()));
    auto* out = factors.mutable_data_ptr<float>();
    for (int64_t row = 0; row * each < factors.numel(); ++row) {
      const uint64_t of_row =
          rows.defined()
              ? draw_bits(now, static_cast<uint64_t>(rows.const_data_ptr<int64_t>()[row]))
              : now;
      for (int64_t i = 0; i < each; ++i) {
        const auto bits = static_cast<uint32_t>(draw_bits(of_row, static_cast<uint64_t>(i)) >> 32);
        out[row * each + i] = bits < limit ? 0.0f : kept;
      }
    }
  }
  return factors.to(like.scalar_type());
}

at::Tensor CountedDropout::operator()(const at::Tensor& x, uint64_t branch) const {
  return share > 0 ? x * dropout_factors(*this, x, branch) : x;
}

}  // namespace tandem
