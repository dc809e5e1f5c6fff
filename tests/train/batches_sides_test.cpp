// Which clips a model may see, and on which side of a split.
#include <gtest/gtest.h>

#include <set>

#include "train/batches_corpus.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

std::set<std::string> ids_of(const SpeechFeed& speech) {
  std::set<std::string> ids;
  for (const Bucket& bucket : speech.order.buckets())
    for (const int64_t clip : bucket.clips) ids.emplace(speech.corpus.index()[clip].id);
  return ids;
}

ClipIndex index_of(const std::vector<std::string>& ids) {
  std::vector<Clip> clips;
  for (const std::string& id : ids)
    clips.push_back({.id = id, .frames = 1000, .sample_rate = 1000});
  return ClipIndex::from(std::move(clips), ".");
}

std::vector<std::string> some_ids(int count) {
  std::vector<std::string> ids;
  for (int i = 0; i < count; ++i) ids.push_back("clip" + std::to_string(i));
  return ids;
}

std::set<std::string> side_of(const std::vector<std::string>& ids, Side side, double share) {
  const ClipIndex index = index_of(ids);
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < index.size(); ++row) rows.push_back(row);
  std::set<std::string> found;
  for (const int64_t row : rows_of_side(index, rows, side, share)) found.emplace(index[row].id);
  return found;
}

}  // namespace

TEST(CorpusSplit, PutsAClipOnTheSameSideWhateverTheOrderAndTheOthers) {
  std::vector<std::string> ids = some_ids(4000);
  const auto validation = side_of(ids, Side::validation, 0.1);
  const auto training = side_of(ids, Side::training, 0.1);
  EXPECT_EQ(validation.size() + training.size(), 4000u);
  EXPECT_NEAR(static_cast<double>(validation.size()), 400, 80);
  for (const std::string& id : validation) EXPECT_EQ(training.count(id), 0u);
  EXPECT_EQ(side_of(ids, Side::all, 0.1).size(), 4000u);
  std::reverse(ids.begin(), ids.end());
  EXPECT_EQ(side_of(ids, Side::validation, 0.1), validation);
  ids.resize(2000);
  for (const std::string& id : side_of(ids, Side::validation, 0.1))
    EXPECT_EQ(validation.count(id), 1u) << id;
  const auto more = side_of(some_ids(4000), Side::validation, 0.2);
  for (const std::string& id : validation)
    EXPECT_EQ(more.count(id), 1u) << "a larger share takes more, never others";
}

TEST(CorpusSplit, LeavesEachSideAClipWhereThereAreTwo) {
  for (const int count : {2, 3, 10}) {
    for (const double share : {1e-9, 0.5, 1.0}) {
      const auto validation = side_of(some_ids(count), Side::validation, share);
      const auto training = side_of(some_ids(count), Side::training, share);
      EXPECT_GE(validation.size(), 1u) << count << " " << share;
      EXPECT_GE(training.size(), 1u) << count << " " << share;
      EXPECT_EQ(validation.size() + training.size(), static_cast<size_t>(count));
    }
  }
  EXPECT_EQ(side_of(some_ids(1), Side::validation, 0.5).size(), 0u);
  EXPECT_EQ(side_of(some_ids(1), Side::training, 0.5).size(), 1u);
  EXPECT_EQ(side_of(some_ids(100), Side::validation, 0).size(), 0u);
}

TEST(SpeechFeedSides, AreOpenedAsTheSettingsSay) {
  const SpeechFolder folder(21), other(5);
  DataConfig config = SpeechFolder::settings();
  config.train_data = folder.index;
  config.validation_share = 0.2;
  const auto training = open_training(config, voice_feed(config));
  const auto validation = open_validation(config, voice_feed(config));
  ASSERT_TRUE(validation);
  const auto trained = ids_of(*training), validated = ids_of(*validation);
  EXPECT_EQ(trained.size() + validated.size(), 21u);
  for (const std::string& id : validated) EXPECT_EQ(trained.count(id), 0u);
  EXPECT_EQ(validation->order.batch(0).clips, validation->order.buckets()[0].clips)
      << "validation keeps its order";

  config.validation_share = 0;
  EXPECT_FALSE(open_validation(config, voice_feed(config)));
  EXPECT_EQ(ids_of(*open_training(config, voice_feed(config))).size(), 21u);
  config.validation_share = 0.2;
  config.val_data = other.index;
  EXPECT_EQ(ids_of(*open_training(config, voice_feed(config))).size(), 21u);
  EXPECT_EQ(ids_of(*open_validation(config, voice_feed(config))).size(), 5u);
  config.train_data.reset();
  EXPECT_EQ(thrown_by([&] { open_training(config, voice_feed(config)); }).kind, "config");
}

TEST(ClipBounds, LeaveOutWhatTheModelCannotTakeWithASentence) {
  const SpeechFolder folder(21);  // 0.6 to 3.5 s, texts of 13 to 22 characters
  const DataConfig config = SpeechFolder::settings();
  SpeechFeedOptions options = voice_feed(config);
  options.bad_list = folder.bad_list();
  options.bounds = {.most_samples = 60 * 1024, .most_tokens = 17};
  SpeechFeed speech(folder.index, config, options);
  const std::set<std::string> kept = ids_of(speech);
  size_t within = 0;
  for (int64_t row = 0; row < speech.corpus.index().size(); ++row) {
    const ClipView clip = speech.corpus.index()[row];
    const bool fits = clip.frames <= 60 * 1024 && speech.corpus.ids(row).size() <= 17;
    EXPECT_EQ(kept.count(std::string(clip.id)), fits ? 1u : 0u) << clip.id;
    within += fits;
  }
  EXPECT_LT(within, 21u);
  const auto reasons = speech.bad.left_out_by_reason();
  EXPECT_GT(reasons.at("too long"), 0);
  EXPECT_GT(reasons.at("text too long"), 0);
  EXPECT_EQ(reasons.at("too long") + reasons.at("text too long"),
            static_cast<int64_t>(21 - within));
  EXPECT_EQ(speech.bad.total(), 0) << "none of them is a fault";
  EXPECT_EQ(speech.bad.summary(), "");
  const std::string list = contents(folder.bad_list());
  EXPECT_TRUE(contains(list, " s; the model takes 2.79 s at most")) << list;
  EXPECT_TRUE(contains(list, " tokens; the model takes 17 at most")) << list;

  GptBatches batches(speech, narrow_dvae_encoder(), {.seed = 3});
  for (int64_t index = 0; index < speech.order.batches_an_epoch(); ++index) {
    const Batch batch = made_batch(batches, index);
    EXPECT_LE(batch.fields[gpt_codes].size(1), 60) << "nor does the padding pass the bounds";
    EXPECT_LE(batch.fields[gpt_text].size(1), 17);
  }
}

TEST(ClipBounds, ThatLeaveNothingAreOneSentence) {
  const SpeechFolder folder(6);
  const DataConfig config = SpeechFolder::settings();
  SpeechFeedOptions options = voice_feed(config);
  options.bounds = {.most_samples = 1024};
  const Thrown thrown = thrown_by([&] { SpeechFeed(folder.index, config, options); });
  EXPECT_EQ(thrown.kind, "data");
  EXPECT_EQ(thrown.sentence, "the model can take none of the 6 clips (6 too long)");
}

TEST(ClipBounds, OfAModelAreItsPositions) {
  const XttsConfig v2;
  const ClipBounds bounds = voice_bounds(v2);
  EXPECT_EQ(bounds.most_tokens + 2, 404) << "START and STOP have positions too";
  EXPECT_EQ(bounds.most_samples, 602 * 1024);
  EXPECT_LE(bounds.most_samples / 1024 + 1 + stop_targets, 608);
}

}  // namespace tandem::tests
