#include "train/nan_watch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "support/captured.h"
#include "train/learner.h"

namespace tandem {
namespace {

// What a watch says of `work`; nothing when it found nothing.
std::string found_in(const std::function<void(at::Tensor&)>& work) {
  at::Tensor weight = at::full({2, 3}, -1.0);
  const std::vector<Phase> phases = {{.name = "all", .tensors = {{"layer.weight", &weight}}}};
  const NanWatch watch(phases, 7);
  work(weight);
  try {
    watch.check();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric);
    return error.what();
  }
  return "";
}

TEST(NanWatch, NamesTheOperationItsShapeAndItsParameter) {
  EXPECT_EQ(found_in([](at::Tensor& weight) { at::sum(at::sqrt(at::add(at::log(weight), 1))); }),
            "step 7: the first number that is not one comes out of `aten::log`, shape [2, 3], with "
            "the parameter `layer.weight`");
  EXPECT_EQ(found_in([](at::Tensor&) { at::sqrt(at::full({4}, -2.0)); }),
            "step 7: the first number that is not one comes out of `aten::sqrt`, shape [4]");
}

TEST(NanWatch, TheWorkOfOtherThreadsIsNotTheStep) {
  EXPECT_EQ(found_in([](at::Tensor& weight) { std::thread([&] { at::log(weight); }).join(); }), "");
}

TEST(NanWatch, IsSilentWhereAllAreNumbers) {
  EXPECT_EQ(found_in([](at::Tensor& weight) { at::log(at::abs(weight)); }), "");
}

TEST(NanWatch, WhatNobodyHasWrittenYetIsNoResult) {
  const at::Tensor raw = at::full({4}, NAN);  // as memory that was used before
  EXPECT_EQ(found_in([&](at::Tensor&) {
              raw.narrow(0, 0, 2).view({2, 1}).zero_();
              raw.narrow(0, 2, 2).copy_(at::ones({2}));
            }),
            "");
}

}  // namespace
}  // namespace tandem
