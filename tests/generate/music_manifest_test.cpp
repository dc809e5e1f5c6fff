#include "generate/music_manifest.h"

#include <gtest/gtest.h>

#include "generate/clip_writer.h"
#include "support/captured.h"
#include "support/temporary_folder.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace {

class ClipManifestTest : public testing::Test {
 protected:
  ClipManifestTest() { make_folder(folder / "audio_samples"); }
  ClipJob job(int64_t shard, int64_t shards) const {
    return {.folder = folder.path(), .shard = shard, .shards = shards};
  }
  ClipEntry done(const std::string& name, const std::string& bytes = "sound") {
    const std::string file = folder.write("audio_samples/" + name + ".wav", bytes);
    return {.id = name,
            .text = "a “b”\n",
            .file = name + ".wav",
            .seed = 9007199254740991,
            .recipe = "r",
            .status = "done",
            .seconds = 0.5,
            .channels = 2,
            .sample_rate = 32000,
            .clipped = 3,
            .bytes = static_cast<int64_t>(bytes.size()),
            .checksum = file_checksum(file)};
  }
  static std::vector<WantedClip> wanted() {
    return {{"a.wav", "r"}, {"b.wav", "r"}, {"c.wav", "r"}};
  }
  static Captions captions() {
    return parse_captions(check_table("id,text\na,1\nb,2\nc,\"3\n4\"\n", "c.csv"), ".csv", {});
  }
  bool there(const std::string& name) { return std::filesystem::exists(folder / name); }
  TestFolder folder;
};

TEST_F(ClipManifestTest, AnEntryComesBackAsItWas) {
  ClipEntry given = done("a");
  given.audio_prompt = "p.wav";
  const auto read = clip_entry(to_json_line(given));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json_line(*read), to_json_line(given));
  EXPECT_EQ(read->seed, given.seed);
  EXPECT_EQ(read->audio_prompt, "p.wav");
  for (const char* line : {"", "{}", "[1]", "{\"id\": 3}", "{\"id\": \"a\", \"te"}) {
    EXPECT_FALSE(clip_entry(line)) << line;
  }
}

TEST_F(ClipManifestTest, AClipIsWholeOnlyAsItWasWritten) {
  ClipManifest manifest(job(0, 1));
  EXPECT_FALSE(manifest.whole({"a.wav", "r"}));
  manifest.add(done("a"));
  EXPECT_TRUE(manifest.whole({"a.wav", "r"}));
  EXPECT_FALSE(manifest.whole({"a.wav", "other"}));
  folder.write("audio_samples/a.wav", "Sound");
  EXPECT_FALSE(manifest.whole({"a.wav", "r"})) << "same size, other bytes";
  folder.write("audio_samples/a.wav", "sound ");
  EXPECT_FALSE(manifest.whole({"a.wav", "r"}));
  std::filesystem::remove(folder / "audio_samples/a.wav");
  EXPECT_FALSE(manifest.whole({"a.wav", "r"}));
  ClipEntry failed = done("b");
  failed.status = "failed";
  manifest.add(failed);
  EXPECT_FALSE(manifest.whole({"b.wav", "r"}));
}

TEST_F(ClipManifestTest, GoesOnAfterAHalfWrittenLine) {
  const std::string whole = to_json_line(done("a"));
  folder.write("manifest.0-of-1.jsonl", whole + "\n" + whole.substr(0, 60));
  {
    ClipManifest manifest(job(0, 1));
    manifest.add(done("b"));
  }
  ClipManifest again(job(0, 1));
  EXPECT_TRUE(again.whole({"a.wav", "r"}));
  EXPECT_TRUE(again.whole({"b.wav", "r"}));
}

TEST_F(ClipManifestTest, TheLastShardMergesInTheCaptionsOrder) {
  ClipManifest first(job(0, 2)), second(job(1, 2));
  first.add(done("c"));
  first.add(done("a"));
  EXPECT_FALSE(first.merge(captions(), wanted(), false));
  EXPECT_FALSE(there("manifest.jsonl"));
  EXPECT_FALSE(there("metadata.csv"));
  ClipEntry failed = done("b");
  failed.status = "failed";
  failed.error = "why";
  second.add(failed);
  EXPECT_TRUE(second.merge(captions(), wanted(), false));
  const std::string manifest = read_file(folder / "manifest.jsonl");
  EXPECT_EQ(manifest, to_json_line(done("a")) + "\n" + to_json_line(failed) + "\n" +
                          to_json_line(done("c")) + "\n");
  EXPECT_EQ(read_file(folder / "metadata.csv"), "id,text,filename\na,1,a.wav\nc,\"3\n4\",c.wav\n");
  EXPECT_TRUE(there("manifest.0-of-2.jsonl")) << "its job still holds it";
  EXPECT_FALSE(there("manifest.1-of-2.jsonl"));
  EXPECT_TRUE(first.merge(captions(), wanted(), false)) << "again, with the same outcome";
  EXPECT_EQ(read_file(folder / "manifest.jsonl"), manifest);
  EXPECT_FALSE(there("manifest.0-of-2.jsonl"));
}

TEST_F(ClipManifestTest, AClipThatIsGoneIsNotMerged) {
  ClipManifest manifest(job(0, 1));
  for (const char* name : {"a", "b", "c"}) manifest.add(done(name));
  std::filesystem::remove(folder / "audio_samples/b.wav");
  EXPECT_FALSE(manifest.merge(captions(), wanted(), false));
  EXPECT_TRUE(manifest.merge(captions(), wanted(), true));
  EXPECT_EQ(split(read_file(folder / "manifest.jsonl"), '\n').size(), 3) << "two and the end";
}

TEST_F(ClipManifestTest, PartsOfOtherShardCountsAreReadAndMerged) {
  {
    ClipManifest before(job(2, 3));
    before.add(done("a"));
  }
  ClipManifest now(job(0, 1));
  EXPECT_TRUE(now.whole({"a.wav", "r"}));
  now.add(done("b"));
  now.add(done("c"));
  EXPECT_TRUE(now.merge(captions(), wanted(), false));
  EXPECT_FALSE(there("manifest.2-of-3.jsonl"));
  EXPECT_EQ(split(read_file(folder / "manifest.jsonl"), '\n').size(), 4);
}

TEST_F(ClipManifestTest, RefusesToMakeAShardTwiceOrToShareOtherwise) {
  const auto refusal = [&](int64_t shard, int64_t shards) {
    const Error error = error_of([&] { ClipManifest manifest(job(shard, shards)); });
    EXPECT_EQ(error.kind(), ErrorKind::io);
    return std::string(error.what());
  };
  const std::string where = "`" + folder.path().string() + "`";
  {
    ClipManifest manifest(job(1, 3));
    EXPECT_EQ(refusal(1, 3), "another run is making shard 1 of 3 in " + where);
    EXPECT_EQ(refusal(0, 1), "another run is writing into " + where +
                                 " with other shards (`manifest.1-of-3.jsonl`); this one would "
                                 "make shard 0 of 1");
    ClipManifest beside(job(2, 3));
    EXPECT_TRUE(beside.locked());
  }
  ClipManifest alone(job(0, 1));
  EXPECT_EQ(refusal(0, 1), "another run is writing into " + where);
  EXPECT_NE(refusal(0, 2).find("with other shards"), std::string::npos);
}

}  // namespace
}  // namespace tandem
