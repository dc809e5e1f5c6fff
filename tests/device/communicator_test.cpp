#include "device/communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "device/simulated.h"
#include "support/captured.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using Group = std::vector<std::unique_ptr<Communicator>>;

// Runs `work` as every rank at once and returns what each threw, as text ("" for nothing).
std::vector<std::string> as_ranks(Group& group, const std::function<void(Communicator&)>& work) {
  std::vector<std::string> failures(group.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        work(*group[rank]);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::peer);
        failures[rank] = error.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return failures;
}

const std::vector<std::string> none(4);

Group group_of(int size, std::chrono::milliseconds timeout = 20000ms) {
  return make_in_process_group(simulate_devices(size), timeout);
}

TEST(Communicator, SumsInRankOrderToTheSameBitsEverywhere) {
  Group group = group_of(4);
  const at::Tensor inputs = at::randn({4, 1001}, at::kFloat);
  const at::Tensor expected = ((inputs[0] + inputs[1]) + inputs[2]) + inputs[3];
  std::vector<at::Tensor> results(4);
  EXPECT_EQ(as_ranks(group,
                     [&](Communicator& rank) {
                       at::Tensor mine = inputs[rank.rank()].clone();
                       rank.all_reduce(mine, Reduce::sum)->wait();
                       results[static_cast<size_t>(rank.rank())] = mine;
                     }),
            none);
  for (const at::Tensor& result : results) EXPECT_TRUE(at::equal(result, expected));
}

TEST(Communicator, MeansScalarsEmptyAndStridedTensors) {
  Group group = group_of(3);
  EXPECT_EQ(as_ranks(group,
                     [](Communicator& rank) {
                       at::Tensor scalar =
                           at::full({}, static_cast<double>(rank.rank()), at::kDouble);
                       at::Tensor empty = at::empty({0}, at::kFloat);
                       at::Tensor whole = at::zeros({4, 6}, at::kFloat);
                       at::Tensor strided = whole.t().slice(0, 1, 5);  // not contiguous
                       strided.fill_(rank.rank());
                       rank.all_reduce(scalar, Reduce::mean)->wait();
                       rank.all_reduce(empty, Reduce::sum)->wait();
                       rank.all_reduce(strided, Reduce::mean)->wait();
                       EXPECT_EQ(scalar.const_data_ptr<double>()[0], 1.0);
                       EXPECT_TRUE(at::equal(strided, at::ones({4, 4})));
                       EXPECT_EQ(whole.sum().const_data_ptr<float>()[0],
                                 16.0f);  // what lies around it is untouched
                     }),
            std::vector<std::string>(3));
}

TEST(Communicator, IsAsynchronous) {
  Group group = group_of(2);
  at::Tensor early = at::ones({3});
  const auto work = group[0]->all_reduce(early, Reduce::sum);  // returns though rank 1 is not there
  EXPECT_FALSE(work->done());
  at::Tensor late = at::ones({3});
  group[1]->all_reduce(late, Reduce::sum)->wait();
  work->wait();
  EXPECT_TRUE(work->done());
  EXPECT_TRUE(at::equal(early, at::full({3}, 2.0f)));
}

TEST(Communicator, ReducesManyTensorsInBuckets) {
  Group group = group_of(4);
  EXPECT_EQ(as_ranks(group,
                     [](Communicator& rank) {
                       std::vector<at::Tensor> tensors;
                       for (int i = 0; i < 20; ++i)
                         tensors.push_back(
                             at::full({i, 3}, rank.rank() + i, i % 3 ? at::kFloat : at::kDouble));
                       rank.all_reduce_bucketed(tensors, Reduce::mean, 200);
                       for (int i = 0; i < 20; ++i) {
                         EXPECT_TRUE(at::equal(
                             tensors[static_cast<size_t>(i)],
                             at::full({i, 3}, 1.5 + i, tensors[static_cast<size_t>(i)].options())))
                             << i;
                       }
                     }),
            none);
}

TEST(Communicator, BroadcastsAndGathersAndMeets) {
  Group group = group_of(4);
  std::atomic<int> arrived{0};
  EXPECT_EQ(
      as_ranks(group,
               [&](Communicator& rank) {
                 at::Tensor value = at::full({2, 2}, rank.rank(), at::kLong);
                 rank.broadcast(value, 2)->wait();
                 EXPECT_TRUE(at::equal(value, at::full({2, 2}, 2, at::kLong)));
                 std::vector<at::Tensor> all;
                 rank.gather(at::full({1}, 10 * rank.rank(), at::kLong), all, 1)->wait();
                 ASSERT_EQ(all.size(), rank.rank() == 1 ? 4u : 0u);
                 if (rank.rank() == 1) {
                   EXPECT_TRUE(at::equal(at::cat(all), at::tensor({0, 10, 20, 30}, at::kLong)));
                 }
                 ++arrived;
                 rank.barrier();
                 EXPECT_EQ(arrived, 4);
               }),
      none);
}

TEST(Communicator, ManyInFlightKeepTheirOrder) {
  Group group = group_of(4);
  EXPECT_EQ(as_ranks(group,
                     [](Communicator& rank) {
                       std::vector<at::Tensor> tensors;
                       std::vector<std::shared_ptr<Work>> works;
                       for (int i = 0; i < 200; ++i) {
                         tensors.push_back(at::full({5}, i, at::kLong));
                         works.push_back(rank.all_reduce(tensors.back(), Reduce::sum));
                       }
                       for (size_t i = 0; i < works.size(); ++i) {
                         works[i]->wait();
                         EXPECT_EQ(tensors[i].const_data_ptr<int64_t>()[0],
                                   static_cast<int64_t>(4 * i));
                       }
                     }),
            none);
}

TEST(Communicator, NamesTheRankThatDoesNotArrive) {
  Group group = group_of(4, 300ms);
  const auto start = std::chrono::steady_clock::now();
  const auto failures = as_ranks(group, [](Communicator& rank) {
    if (rank.rank() == 2) return;  // vanishes without a word
    at::Tensor tensor = at::ones({7});
    rank.all_reduce(tensor, Reduce::sum)->wait();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
  for (int rank : {0, 1, 3}) {
    EXPECT_EQ(failures[static_cast<size_t>(rank)],
              "all-reduce of [7] Float 0 timed out after 0.3s: rank 2 of 4 did not arrive "
              "(arrived: 0, 1, 3)");
  }
  // And the group is dead: later calls fail at once.
  const Error later = error_of([&] { group[0]->barrier(); });
  EXPECT_EQ(exit_code(later.kind()), 7);
}

TEST(Communicator, DoesNotWaitForARankThatLeft) {
  Group group = group_of(3, 60000ms);
  std::thread leaver([&] {
    std::this_thread::sleep_for(50ms);
    group[1].reset();
  });
  const Error error = error_of([&] {
    at::Tensor tensor = at::ones({1});
    const auto other = group[2]->all_reduce(at::ones({1}), Reduce::sum);
    group[0]->all_reduce(tensor, Reduce::sum)->wait();
  });
  leaver.join();
  EXPECT_STREQ(error.what(),
               "all-reduce of [1] Float 0 failed: rank 1 of 3 did not arrive (arrived: 0, 2); it "
               "left the group");
}

TEST(Communicator, NoticesRanksThatDisagree) {
  Group group = group_of(2);
  const auto failures = as_ranks(group, [](Communicator& rank) {
    at::Tensor tensor = at::ones({rank.rank() == 0 ? 3 : 4});
    rank.all_reduce(tensor, Reduce::sum)->wait();
  });
  for (const std::string& failure : failures) {
    EXPECT_NE(failure.find("the ranks disagree about collective 0"), std::string::npos) << failure;
    EXPECT_NE(failure.find("[3]"), std::string::npos);
    EXPECT_NE(failure.find("[4]"), std::string::npos);
  }
}

TEST(Communicator, OneRanksFailureEndsTheCollectiveForAll) {
  Group group = group_of(2, 60000ms);
  DeviceRegistry::get().gpus()[1]->memory().set_limit(1);  // rank 1 cannot hold its sum
  const auto failures = as_ranks(group, [](Communicator& rank) {
    try {
      at::Tensor tensor = at::ones({100});
      rank.all_reduce(tensor, Reduce::sum)->wait();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::memory) throw;
      throw Error(ErrorKind::peer, error.what());
    }
  });
  EXPECT_NE(failures[0].find("rank 1 of 2 failed in a collective: /GPU:1 is out of memory"),
            std::string::npos)
      << failures[0];
  EXPECT_NE(failures[1].find("out of memory"), std::string::npos) << failures[1];
}

}  // namespace
}  // namespace tandem
