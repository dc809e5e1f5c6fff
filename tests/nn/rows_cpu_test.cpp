#include "nn/rows/rows_cpu.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

at::Tensor numbers(at::IntArrayRef shape, int seed) {
  at::Tensor x = at::arange(1, 1 + c10::multiply_integers(shape), at::kDouble);
  return (x * 0.7390851 * seed).sin().to(at::kFloat).view(shape);
}

}  // namespace

TEST(RowsCpu, ProductIsTheProduct) {
  for (const auto& [rows, inner, columns] :
       {std::tuple{1, 64, 192}, {5, 280, 840}, {9, 33, 67}, {4, 16, 3}}) {
    const at::Tensor x = numbers({rows, inner}, 1), w = numbers({inner, columns}, 2);
    const at::Tensor bias = numbers({columns}, 3);
    const at::Tensor expected = (x.to(at::kDouble).matmul(w.to(at::kDouble)) + bias).to(at::kFloat);
    EXPECT_LE((row_product_cpu(x, w, bias) - expected).abs().max().item<double>(), 2e-5);
  }
}

TEST(RowsCpu, ARowIsTheSameBitsInAnyCompanyAndOnAnyNumberOfThreads) {
  const at::Tensor x = numbers({23, 280}, 1), w = numbers({280, 515}, 2), bias = numbers({515}, 3);
  const at::Tensor together = row_product_cpu(x, w, bias);
  for (const int64_t row : {0, 3, 7, 22})
    EXPECT_TRUE(at::equal(row_product_cpu(x.narrow(0, row, 1), w, bias)[0], together[row])) << row;
  const int threads = at::get_num_threads();
  at::set_num_threads(threads == 1 ? 2 : 1);
  EXPECT_TRUE(at::equal(row_product_cpu(x, w, bias), together));
  at::set_num_threads(threads);
}

TEST(RowsCpu, AttentionReadsItsOwnPlaceUpToItsPosition) {
  const int64_t places = 3, heads = 2, capacity = 9, width = 8;
  const at::Tensor keys = numbers({places, heads, capacity, width}, 1);
  const at::Tensor values = numbers({places, heads, capacity, width}, 2);
  const at::Tensor queries = numbers({4, heads, width}, 3);
  const std::vector<int64_t> place = {2, 0, 2, 1}, position = {8, 0, 3, 5};
  const at::Tensor out = row_attention_cpu(queries, keys, values, place, position);
  for (size_t i = 0; i < place.size(); ++i) {
    const auto known = [&](const at::Tensor& cache) {
      return cache[place[i]].narrow(1, 0, position[i] + 1);
    };
    const auto row = static_cast<int64_t>(i);
    const at::Tensor expected =
        at::scaled_dot_product_attention(queries[row].unsqueeze(1), known(keys), known(values));
    EXPECT_LE((out[row] - expected.reshape({-1})).abs().max().item<double>(), 1e-6) << i;
  }
}

}  // namespace tandem
