#include "nn/checksum.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "nn/tensors.h"

namespace tandem::tests {
namespace {

uint64_t sum_of(const at::Tensor& tensor) {
  return static_cast<uint64_t>(checksum(tensor).item<int64_t>());
}
uint64_t sum_of(const std::vector<at::Tensor>& tensors) {
  return static_cast<uint64_t>(checksum(tensors).item<int64_t>());
}

at::Tensor bytes(int64_t count) { return at::arange(count).to(at::kByte); }

}  // namespace

// Written into no file, but host and device, and ranks of different builds, must agree.
TEST(Checksum, ValuesArePinned) {
  const at::Tensor floats = at::tensor({1.0f, 2.0f, 3.0f});
  EXPECT_EQ(sum_of(floats), 0x1ba5b3ca15577ceaULL);
  EXPECT_EQ(sum_of(bytes(7)), 0xd35ddc7150988284ULL);
  EXPECT_EQ(sum_of({floats, bytes(7)}), 0x4251c646ab065381ULL);
}

TEST(Checksum, EqualBitsGiveEqualSums) {
  const at::Tensor x = at::randn({37, 5});
  EXPECT_EQ(sum_of(x), sum_of(x.clone()));
  EXPECT_EQ(sum_of({x, x}), sum_of({x.clone(), x.clone()}));
}

TEST(Checksum, OneFlippedBitAnywhereChangesIt) {
  at::Tensor x = at::randn({25}).view(at::kByte).slice(0, 0, 98);  // ends inside a word
  x = x.clone();
  const uint64_t before = sum_of(x);
  std::set<uint64_t> seen{before};
  auto* data = static_cast<unsigned char*>(x.data_ptr());
  for (int64_t bit = 0; bit < 98 * 8; ++bit) {
    data[bit / 8] = static_cast<unsigned char>(data[bit / 8] ^ (1 << bit % 8));
    EXPECT_TRUE(seen.insert(sum_of(x)).second) << "bit " << bit;
    data[bit / 8] = static_cast<unsigned char>(data[bit / 8] ^ (1 << bit % 8));
  }
  EXPECT_EQ(sum_of(x), before);
}

TEST(Checksum, SwappedElementsChangeIt) {
  const at::Tensor x = at::tensor({1.0f, 2.0f, 3.0f});
  EXPECT_NE(sum_of(x), sum_of(at::tensor({2.0f, 1.0f, 3.0f})));
  EXPECT_NE(sum_of(x), sum_of(x.flip(0)));
}

TEST(Checksum, TellsZeroFromMinusZero) {
  EXPECT_NE(sum_of(at::tensor({0.0f})), sum_of(at::tensor({-0.0f})));
}

TEST(Checksum, LengthsOfZerosDiffer) {
  std::set<uint64_t> sums;
  for (int64_t words = 0; words < 50; ++words) sums.insert(sum_of(at::zeros({words})));
  EXPECT_EQ(sums.size(), 50u);
}

TEST(Checksum, AViewCountsAsItShows) {
  const at::Tensor whole = at::randn({8, 6});
  for (const at::Tensor& view :
       {whole.t(), whole.slice(1, 1, 4), whole[3], whole.select(1, 2), whole[0].expand({4, 6})})
    EXPECT_EQ(sum_of(view), sum_of(view.clone(at::MemoryFormat::Contiguous)));
  const at::Tensor text = bytes(64);  // starts at odd addresses
  for (int64_t start = 0; start < 4; ++start)
    EXPECT_EQ(sum_of(text.slice(0, start, start + 21)),
              sum_of(text.slice(0, start, start + 21).clone()));
}

TEST(Checksum, NothingSumsToNothing) {
  EXPECT_EQ(sum_of(at::empty({0})), 0u);
  EXPECT_EQ(sum_of(at::empty({3, 0})), 0u);
  EXPECT_NE(sum_of(at::zeros({1})), 0u);
}

TEST(Checksum, TheOrderOfTensorsMatters) {
  const at::Tensor a = at::ones({3}), b = at::zeros({3});
  EXPECT_NE(sum_of({a, b}), sum_of({b, a}));
  EXPECT_NE(sum_of({a, b}), sum_of(std::vector<at::Tensor>{a}));
  EXPECT_NE(sum_of({a, a}), sum_of({b, b})) << "equal tensors do not cancel";
}

TEST(Checksum, DoesNotDependOnTheNumberOfThreads) {
  const at::Tensor x = at::randn({300'001});
  const int before = at::get_num_threads();
  std::set<uint64_t> sums;
  for (const int threads : {1, 2, 3, 7}) {
    at::set_num_threads(threads);
    sums.insert(sum_of(x));
  }
  at::set_num_threads(before);
  EXPECT_EQ(sums.size(), 1u);
}

TEST(Checksum, OfAParameterNeedsNoGradient) {
  const at::Tensor parameter = at::ones({4}).requires_grad_(true);
  EXPECT_FALSE(checksum(parameter).requires_grad());
  EXPECT_EQ(checksum(parameter).scalar_type(), at::kLong);
  EXPECT_EQ(checksum(parameter).dim(), 0);
}

}  // namespace tandem::tests
