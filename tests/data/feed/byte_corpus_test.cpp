#include "data/feed/byte_corpus.h"

#include <gtest/gtest.h>

#include "data/feed/feed.h"
#include "nn/tensors.h"
#include "util/counted_random.h"
#include "data/order/batch_order.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

constexpr int64_t context = 8;

// 9 * 900 training places hold their own index modulo 251; the held-out tenth holds 251 to 255.
class ByteCorpusTest : public ::testing::Test {
 protected:
  ByteCorpusTest() {
    std::string text;
    for (int i = 0; i < 8100; ++i) text += static_cast<char>(i % 251);
    for (int i = 0; i < 900; ++i) text += static_cast<char>(251 + i % 5);
    put(scratch_ / "text", text);
  }
  ByteCorpus corpus() const { return {(scratch_ / "text").string(), context}; }
  TestFolder scratch_;
};

void expect_same(const Batch& a, const Batch& b) {
  EXPECT_TRUE(same_bits(a.fields[byte_tokens], b.fields[byte_tokens]));
  EXPECT_TRUE(same_bits(a.fields[byte_targets], b.fields[byte_targets]));
}

}  // namespace

TEST_F(ByteCorpusTest, TargetsAreTheTokensShiftedByOne) {
  const Batch batch = corpus().train_batch(0, 0, 0, 16);
  EXPECT_EQ(batch.fields[byte_tokens].sizes(), (std::vector<int64_t>{16, context}));
  EXPECT_EQ(batch.fields[byte_targets].sizes(), (std::vector<int64_t>{16, context}));
  EXPECT_EQ(batch.fields[byte_tokens].scalar_type(), at::kLong);
  EXPECT_TRUE(same_bits(batch.fields[byte_targets].narrow(1, 0, context - 1).contiguous(),
                        batch.fields[byte_tokens].narrow(1, 1, context - 1).contiguous()));
  EXPECT_TRUE(
      at::equal(batch.fields[byte_targets], (batch.fields[byte_tokens] + 1).remainder(251)));
}

TEST_F(ByteCorpusTest, TheOrderIsArithmetic) {
  ByteCorpus corpus = this->corpus();
  for (const int64_t index : {0, 3, 1'000'000}) {
    const Batch batch = corpus.train_batch(5, index, 0, 4);
    EXPECT_EQ(batch.index, index);
    for (int64_t sample = 0; sample < 4; ++sample) {
      const uint64_t start =
          counted_below(8100 - context, 5, "byte window", static_cast<uint64_t>(index),
                        static_cast<uint64_t>(sample));
      EXPECT_EQ(batch.fields[byte_tokens][sample][0].item<int64_t>(),
                static_cast<int64_t>(start % 251));
    }
  }
}

TEST_F(ByteCorpusTest, ABatchIsTheSameAtAnyTime) {
  ByteCorpus first = corpus(), second = corpus();
  for (int64_t index = 0; index < 5; ++index) first.train_batch(1, index, 0, 4);
  expect_same(first.train_batch(1, 7, 0, 4), second.train_batch(1, 7, 0, 4));
}

TEST_F(ByteCorpusTest, SeedsAndIndicesGiveOtherBatches) {
  ByteCorpus corpus = this->corpus();
  const Batch batch = corpus.train_batch(1, 7, 0, 8);
  EXPECT_FALSE(
      same_bits(batch.fields[byte_tokens], corpus.train_batch(2, 7, 0, 8).fields[byte_tokens]));
  EXPECT_FALSE(
      same_bits(batch.fields[byte_tokens], corpus.train_batch(1, 8, 0, 8).fields[byte_tokens]));
}

TEST_F(ByteCorpusTest, TheReplicasPartsTogetherAreTheWholeBatch) {
  ByteCorpus corpus = this->corpus();
  const Batch whole = corpus.train_batch(1, 2, 0, 10);
  for (const int replicas : {1, 2, 3, 10}) {
    std::vector<at::Tensor> tokens, targets;
    for (int rank = 0; rank < replicas; ++rank) {
      const Part part = part_of(10, replicas, rank);
      const Batch batch = corpus.train_batch(1, 2, part.first, part.count);
      tokens.push_back(batch.fields[byte_tokens]);
      targets.push_back(batch.fields[byte_targets]);
    }
    expect_same({.fields = {at::cat(tokens), at::cat(targets)}}, whole);
  }
}

TEST_F(ByteCorpusTest, TrainingNeverSeesTheHeldOutTenth) {
  ByteCorpus corpus = this->corpus();
  for (int64_t index = 0; index < 50; ++index) {
    const Batch batch = corpus.train_batch(0, index, 0, 200);
    EXPECT_LE(batch.fields[byte_tokens].max().item<int64_t>(), 250);
    EXPECT_LE(batch.fields[byte_targets].max().item<int64_t>(), 250);
  }
}

TEST_F(ByteCorpusTest, ValidationGoesThroughTheHeldOutTenthOnly) {
  const ByteCorpus corpus = this->corpus();
  EXPECT_EQ(corpus.validation_windows(), 899 / context);
  const Batch batch = corpus.validation_batch(0, corpus.validation_windows());
  EXPECT_GE(batch.fields[byte_tokens].min().item<int64_t>(), 251);
  EXPECT_GE(batch.fields[byte_targets].min().item<int64_t>(), 251);
  EXPECT_EQ(batch.fields[byte_tokens][0][0].item<int64_t>(), 251);
  EXPECT_EQ(batch.fields[byte_tokens][1][0].item<int64_t>(), 251 + context % 5)
      << "the next window follows";
  expect_same(corpus.validation_batch(corpus.validation_windows(), 2),
              corpus.validation_batch(0, 2));
}

TEST_F(ByteCorpusTest, CountsItsTrainingWindows) {
  EXPECT_EQ(corpus().train_windows(), 8100 / context);
}

TEST_F(ByteCorpusTest, TheShortestTextHasOneWindowOfEach) {
  put(scratch_ / "short", std::string(10 * (context + 1), 'a'));
  ByteCorpus corpus((scratch_ / "short").string(), context);
  EXPECT_EQ(corpus.validation_windows(), 1);
  EXPECT_EQ(corpus.validation_batch(0, 3).fields[byte_tokens].size(0), 3);
  EXPECT_EQ(corpus.train_batch(0, 0, 0, 1).fields[byte_tokens].size(1), context);
}

TEST_F(ByteCorpusTest, ATooShortTextIsADataErrorWithItsSizes) {
  const std::string path = (scratch_ / "short").string();
  for (const int64_t bytes : {int64_t{0}, 10 * (context + 1) - 1}) {
    put(path, std::string(static_cast<size_t>(bytes), 'a'));
    const Thrown thrown = thrown_by([&] { ByteCorpus corpus(path, context); });
    EXPECT_EQ(thrown.kind, "data");
    EXPECT_EQ(thrown.sentence, "`" + path + "` has " + std::to_string(bytes) +
                                   " bytes; --stage bytes needs at least 90 (ten windows of 9)");
    EXPECT_EQ(thrown.hint, "give a longer text, or a smaller --model-size");
  }
}

TEST_F(ByteCorpusTest, AMissingTextIsAnIoError) {
  const Thrown thrown =
      thrown_by([&] { ByteCorpus corpus((scratch_ / "none").string(), context); });
  EXPECT_EQ(thrown.kind, "io");
  EXPECT_TRUE(contains(thrown.sentence, "No such file or directory")) << thrown.sentence;
}

}  // namespace tandem::tests
