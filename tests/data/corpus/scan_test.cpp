#include "data/corpus/scan.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>

#include "data/corpus/corpus_files.h"
#include "support/captured.h"
#include "util/signals.h"

namespace tandem {
namespace {

using tests::write_text;
using tests::write_tone;

Scan scan(const std::filesystem::path& path, ScanOptions options = {}) {
  options.workers = 2;
  return scan_corpus(read_dataset(detect_dataset(path.string()), {.language = "en"}), options);
}
const ScannedClip& clip(const Scan& scan, const std::string& id) {
  for (const ScannedClip& scanned : scan.clips) {
    if (scanned.clip.id == id) return scanned;
  }
  ADD_FAILURE() << "no clip " << id;
  static const ScannedClip none;
  return none;
}

// A vocabulary of letters: id 1 is unknown, space is 2.
struct Letters : Tokenizer {
  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    for (const char c : text) ids.push_back(c == ' ' ? 2 : c >= 'a' && c <= 'z' ? 3 + c - 'a' : 1);
    return ids;
  }
  std::string decode(const std::vector<int32_t>&) const override { return ""; }
  int64_t vocabulary_size() const override { return 29; }
  int32_t unknown_id() const override { return 1; }
  int32_t id_of(std::string_view) const override { return -1; }
};
const TokenizerMaker letters = [](const std::vector<std::string>&) {
  return std::make_shared<const Letters>();
};

TEST(Scan, KeepsGoodClipsWithTheirFacts) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 3, 1.5);
  const Scan result = scan(folder.path());
  EXPECT_EQ(result.kept().size(), 3u);
  const Clip& kept = clip(result, "c001").clip;
  EXPECT_EQ(kept.frames, 24000);
  EXPECT_EQ(kept.sample_rate, 16000);
  EXPECT_EQ(kept.channels, 1);
  EXPECT_EQ(kept.bytes, static_cast<int64_t>(std::filesystem::file_size(folder / "wavs/c001.wav")));
  EXPECT_GT(kept.modified, int64_t{1700000000} * 1000000000);
  EXPECT_NE(kept.fingerprint, 0u);
  EXPECT_TRUE(result.characters);
  EXPECT_GT(kept.tokens, 10);
}

TEST(Scan, GivesEachBrokenFileItsReasonAndGoesOn) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 2);
  std::string table = tests::read_text(folder / "metadata.csv");
  const auto add = [&](const std::string& id, const std::string& bytes) {
    write_text(folder / ("wavs/" + id + ".wav"), bytes);
    table += id + "|what is said\n";
  };
  const std::string sound = tests::read_text(folder / "wavs/c000.wav");
  add("empty", "");
  add("text", "this is no sound at all, whatever its name says");
  add("cut", sound.substr(0, sound.size() / 2));
  std::filesystem::create_directories(folder / "wavs/folder.wav");
  ::mkfifo((folder / "wavs/pipe.wav").c_str(), 0644);
  std::vector<float> not_finite(16000, 0.1f);
  write_wav((folder / "wavs/nan.wav").string(), not_finite, 1, 16000, SampleFormat::float32);
  std::string nan_bytes = tests::read_text(folder / "wavs/nan.wav");
  const uint32_t nan = 0x7fc00000;
  std::memcpy(nan_bytes.data() + nan_bytes.size() - 4000, &nan, sizeof nan);
  add("nan", nan_bytes);
  table += "gone|x\nwavs/pipe.wav|x\nwavs/folder.wav|x\n";
  write_tone(folder / "wavs/short.wav", {.seconds = 0.4});
  write_tone(folder / "wavs/long.wav", {.seconds = 12});
  write_tone(folder / "wavs/mute.wav", {.hertz = 999});
  table += "short|x\nlong|x\nmute|\nno bar\n";
  write_text(folder / "metadata.csv", table);

  const Scan result = scan(folder.path());
  EXPECT_EQ(result.kept().size(), 2u);
  EXPECT_EQ(clip(result, "empty").reason, DropReason::empty);
  EXPECT_EQ(clip(result, "text").reason, DropReason::not_audio);
  EXPECT_EQ(clip(result, "cut").reason, DropReason::truncated);
  EXPECT_EQ(clip(result, "nan").reason, DropReason::not_finite);
  EXPECT_EQ(clip(result, "gone").reason, DropReason::missing);
  EXPECT_EQ(clip(result, "wavs/pipe").reason, DropReason::unreadable);
  EXPECT_EQ(clip(result, "wavs/pipe").detail, "not a plain file");
  EXPECT_EQ(clip(result, "wavs/folder").reason, DropReason::unreadable);
  EXPECT_EQ(clip(result, "short").reason, DropReason::too_short);
  EXPECT_EQ(clip(result, "short").detail, "0.40 s; at least 0.50 s");
  EXPECT_EQ(clip(result, "long").reason, DropReason::too_long);
  EXPECT_EQ(clip(result, "long").detail, "12.00 s; at most 11.60 s");
  EXPECT_EQ(clip(result, "mute").reason, DropReason::no_text);
  EXPECT_EQ(result.count(DropReason::bad_row), 1);
  EXPECT_EQ(result.faults(), 8) << "seven files and a row; what is only unwanted is no fault";
}

TEST(Scan, KeepsTheFirstOfEqualSounds) {
  const TestFolder folder;
  write_tone(folder / "wavs/a.wav");
  write_tone(folder / "wavs/b.wav", {.hertz = 300});
  std::filesystem::copy_file(folder / "wavs/a.wav", folder / "wavs/c.wav");
  write_text(folder / "metadata.csv", "a|one\nb|two\nc|three\nb|two\n");
  const Scan result = scan(folder.path());
  EXPECT_EQ(result.kept().size(), 2u);
  EXPECT_EQ(result.clips[2].reason, DropReason::duplicate);
  EXPECT_EQ(result.clips[2].detail, "the same sound as `a`, with another text");
  EXPECT_EQ(result.clips[3].detail, "the same sound as `b`");
  const Scan quick = scan(folder.path(), {.quick = true});
  EXPECT_EQ(quick.count(DropReason::duplicate), 1) << "the same file is seen without fingerprints";
  EXPECT_FALSE(quick.clips[0].facts().decoded);
}

TEST(Scan, CountsTokensAndDropsTextsThatDoNotFit) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 3);
  write_text(folder / "metadata.csv",
             "c000|abc def\nc001|" + std::string(201, 'a') + "\nc002|k\xC3\xB6=\n");
  const Scan result = scan(folder.path(), {.tokenizer = letters});
  EXPECT_FALSE(result.characters);
  EXPECT_EQ(result.clips[0].clip.tokens, 7);
  EXPECT_EQ(result.clips[1].reason, DropReason::text_too_long);
  EXPECT_EQ(result.clips[1].detail, "201; at most 200");
  EXPECT_EQ(result.clips[2].reason, DropReason::unknown_tokens);
  EXPECT_NE(result.clips[2].detail.find("the vocabulary has no `\xC3\xB6`"), std::string::npos);
  ScanOptions options{.tokenizer = letters};
  options.limits.max_tokens = 6;
  EXPECT_EQ(scan(folder.path(), options).clips[0].reason, DropReason::text_too_long);
}

TEST(Scan, GivesTheTokenizerTheTextsOfGoodSounds) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 2);
  write_text(folder / "metadata.csv", "c000|abc\ngone|def\nc001|ghi\n");
  std::vector<std::string> seen;
  scan(folder.path(), {.tokenizer = [&](const std::vector<std::string>& texts) {
         seen = texts;
         return std::make_shared<const Letters>();
       }});
  EXPECT_EQ(seen, (std::vector<std::string>{"abc", "ghi"}));
}

std::vector<ScannedClip> judged(int count, int32_t odd_tokens, double z) {
  std::vector<ScannedClip> clips(static_cast<size_t>(count));
  for (size_t i = 0; i < clips.size(); ++i) {
    ScannedClip& one = clips[i];
    one.clip.path = std::to_string(i);
    one.cleaned_text = "x";
    one.sound.facts.frames = 32000;
    one.sound.facts.sample_rate = 16000;
    one.clip.tokens = static_cast<int32_t>(28 + i % 5);
  }
  clips.back().clip.tokens = odd_tokens;
  judge_clips(clips, {.outlier_z = z}, 400);
  return clips;
}

TEST(Scan, DropsOutliersOfTokensASecond) {
  const auto clips = judged(100, 200, 6);
  EXPECT_EQ(clips.back().reason, DropReason::outlier);
  EXPECT_EQ(clips.back().detail, "100.0 tokens a second, others have 15.0 (z +12.8)");
  EXPECT_TRUE(clips.front().kept());
  EXPECT_EQ(judged(100, 2, 6).back().reason, DropReason::outlier) << "too little text";
  EXPECT_TRUE(judged(100, 45, 6).back().kept()) << "within the floor of the spread";
  EXPECT_TRUE(judged(100, 200, 0).back().kept()) << "turned off";
  EXPECT_TRUE(judged(20, 200, 6).back().kept()) << "too few clips to judge";
}

TEST(Scan, ReadsPartsAndTars) {
  const TestFolder folder;
  write_tone(folder / "long.wav", {.seconds = 20});
  write_text(folder / "manifest.jsonl",
             "{\"audio_filepath\":\"long.wav\",\"text\":\"a\",\"offset\":3,\"duration\":2}\n"
             "{\"audio_filepath\":\"long.wav\",\"text\":\"b\",\"offset\":19,\"duration\":5}\n");
  const Scan parts = scan(folder.path());
  ASSERT_EQ(parts.kept().size(), 1u);
  EXPECT_EQ(parts.kept()[0].first_frame, 48000);
  EXPECT_EQ(parts.kept()[0].frames, 32000);
  EXPECT_EQ(parts.clips[1].reason, DropReason::truncated);

  write_tone(folder / "t/a.wav");
  const std::string sound = tests::read_text(folder / "t/a.wav");
  write_text(folder / "s.tar", tests::tar_member("a.wav", sound) +
                                   tests::tar_member("a.txt", "ay") +
                                   tests::tar_member("b.wav", "junk") + tests::tar_end());
  const Scan tar = scan(folder / "s.tar");
  ASSERT_EQ(tar.kept().size(), 1u);
  EXPECT_EQ(tar.kept()[0].frames, 16000);
  EXPECT_EQ(tar.kept()[0].bytes, static_cast<int64_t>(sound.size()));
  EXPECT_EQ(tar.clips[1].reason, DropReason::not_audio);
}

TEST(Scan, ReportsItsProgress) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 5);
  ScanProgress last;
  scan(folder.path(), {.on_progress = [&](const ScanProgress& now) { last = now; }});
  EXPECT_EQ(last.done, 5);
  EXPECT_EQ(last.total, 5);
  EXPECT_GT(last.clips_per_second, 0);
  EXPECT_EQ(last.seconds_left, 0);
}

TEST(Scan, DoesNotLookAtAnUnchangedFileAgain) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 4);
  const std::string partial = (folder / "p").string(), finished = (folder / "f").string();
  std::filesystem::copy_file(folder / "wavs/c000.wav", folder / "first.wav");
  {
    ScanJournal journal(partial, finished);
    EXPECT_EQ(scan(folder.path(), {.quick = true, .journal = &journal}).reused, 0);
  }
  {
    ScanJournal journal(partial, finished);
    EXPECT_EQ(scan(folder.path(), {.journal = &journal}).reused, 0) << "headers are not enough";
  }
  ScanJournal journal(partial, finished);
  write_tone(folder / "wavs/c002.wav", {.seconds = 3});
  const Scan again = scan(folder.path(), {.journal = &journal});
  EXPECT_EQ(again.reused, 3);
  EXPECT_EQ(clip(again, "c002").clip.frames, 48000) << "the changed file";
  EXPECT_TRUE(clip(again, "c001").facts().decoded);
}

TEST(Scan, StopsWhenAskedToAndSaysHowToGoOn) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 3);
  std::string table;
  for (int i = 0; i < 30000; ++i) table += "c000|x\nc001|x\n";
  write_text(folder / "metadata.csv", table);
  for (const auto& [request, kind] : {std::pair(StopRequest::interrupted, ErrorKind::interrupted),
                                      std::pair(StopRequest::terminated, ErrorKind::terminated)}) {
    request_stop(request);
    const Error error = error_of([&] { scan(folder.path()); });
    request_stop(StopRequest::none);
    EXPECT_EQ(error.kind(), kind);
    EXPECT_NE(std::string(error.what()).find("the same command goes on from there"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace tandem
