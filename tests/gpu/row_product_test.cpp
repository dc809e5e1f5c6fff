// Products of packed rows are the same bits whatever stands beside a row. Needs a GPU.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>

#include "device/device_scope.h"
#include "device/registry.h"
#include "gpu/in_child.h"
#include "nn/rows/packed_weight.h"
#include "nn/rows/row_kernels.h"

namespace tandem {
namespace {

// [rows, inner] -> packed, filled up to whole tiles.
at::Tensor pack_rows(const at::Tensor& rows, int64_t inner) {
  const int64_t all = (rows.size(0) + row_block - 1) / row_block * row_block;
  at::Tensor index = at::zeros({rows.size(0), rows.size(1)}, at::kLong);
  auto places = index.accessor<int64_t, 2>();
  for (int64_t r = 0; r < rows.size(0); ++r)
    for (int64_t k = 0; k < rows.size(1); ++k) places[r][k] = packed_index(r, k, inner);
  const at::Tensor packed = at::zeros({all * inner}, rows.options());
  packed.index_put_({index.view({-1})}, rows.reshape({-1}));
  return packed.cuda();
}

struct Case {
  int rows, inner, columns;
  RowOutput output;
  RowHalf half;
};

struct Operands {
  at::Tensor rows, weight, bias, before;  // packed, packed, [columns], [rows, columns]

  // Rows [first, first + count), `first` a multiple of 16.
  at::Tensor product(const Case& one, int first, int count) const {
    const bool gelu = one.output == RowOutput::gelu_tanh;
    const int all = (count + row_block - 1) / row_block * row_block,
              wide = (one.columns + 31) / 32 * 32;
    at::Tensor out = before.narrow(0, first, count).clone();
    const at::Tensor halves = at::zeros({all * wide}, rows.options());
    launch_row_product({.half = one.half,
                        .rows = count,
                        .inner = one.inner,
                        .columns = one.columns,
                        .packed_rows = static_cast<const char*>(rows.const_data_ptr()) +
                                       int64_t{first} * one.inner * 2,
                        .weight = weight.const_data_ptr(),
                        .bias = bias.const_data_ptr<float>(),
                        .output = one.output,
                        .out = out.mutable_data_ptr<float>(),
                        .packed_out = halves.mutable_data_ptr(),
                        .packed_out_inner = wide},
                       c10::cuda::getCurrentCUDAStream());
    return gelu ? halves : out;
  }
};

void expect_rows_alone_are_the_same(const Case& one) {
  const at::ScalarType type = type_of(one.half);
  const at::Tensor rows = at::randn({one.rows, one.inner}).to(type);
  const at::Tensor weight = at::randn({one.inner, one.columns}) / std::sqrt(one.inner);
  const Operands operands{pack_rows(rows, one.inner), pack_weight(weight.cuda(), one.inner, type),
                          at::randn({one.columns}).cuda(),
                          at::randn({one.rows, one.columns}).cuda()};
  const at::Tensor together = operands.product(one, 0, one.rows);
  std::vector<at::Tensor> parts;
  for (int first = 0; first < one.rows; first += row_block)
    parts.push_back(operands.product(one, first, std::min(row_block, one.rows - first)));
  const at::Tensor alone = at::cat(parts);
  EXPECT_TRUE(at::equal(together, alone))
      << one.rows << " rows, " << one.inner << " x " << one.columns << ", output "
      << static_cast<int>(one.output) << ": " << (together != alone).sum().item<int64_t>()
      << " differ";
  if (one.output != RowOutput::store) return;
  const at::Tensor reference =
      at::matmul(rows.to(at::kDouble), weight.to(type).to(at::kDouble)).cuda() + operands.bias;
  EXPECT_LT((together.to(at::kDouble) - reference).abs().max().item<double>(), 2e-4);
}

}  // namespace

TEST(GpuRowProduct, RowsAreTheSameInAnyCompany) {
  IN_CHILD({
    configure_devices({});
    DeviceScope scope(*DeviceRegistry::get().gpus().front());
    for (const RowHalf half : {RowHalf::fp16, RowHalf::bf16}) {
      for (const int rows : {33, 64, 96, 100, 128, 200, 256, 300, 700}) {
        for (const auto& [inner, columns] : {std::pair{1024, 3072},
                                             {1024, 1024},
                                             {4096, 1024},
                                             {1024, 4096},
                                             {1024, 1026},
                                             {96, 776}}) {
          expect_rows_alone_are_the_same({rows, inner, columns, RowOutput::store, half});
        }
        expect_rows_alone_are_the_same({rows, 4096, 1024, RowOutput::add, half});
        expect_rows_alone_are_the_same({rows, 1024, 4096, RowOutput::gelu_tanh, half});
      }
      expect_rows_alone_are_the_same({5000, 1024, 3072, RowOutput::store, half});
    }
  });
}

}  // namespace tandem
