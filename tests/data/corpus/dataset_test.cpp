#include "data/corpus/dataset.h"

#include <gtest/gtest.h>

#include "data/corpus/corpus_files.h"
#include "support/captured.h"

namespace tandem {
namespace {

using tests::write_text;
using tests::write_tone;

struct Found {
  LayoutKind kind;
  std::string why;
  std::vector<FoundClip> clips;
  std::vector<BadRow> bad;
  std::vector<std::string> notices;
};

Found find(const std::filesystem::path& path, const DatasetOptions& options = {}) {
  const DatasetLayout layout = detect_dataset(path.string());
  const Dataset dataset = read_dataset(layout, options);
  return {layout.kind, layout.why, dataset.clips, dataset.bad_rows, dataset.notices};
}

TEST(Dataset, FindsLjspeech) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 2);
  const Found found = find(folder.path(), {.language = "en"});
  EXPECT_EQ(found.kind, LayoutKind::ljspeech);
  EXPECT_EQ(found.why, "LJSpeech: `metadata.csv` has lines `id|text`, the sounds are in `wavs`");
  ASSERT_EQ(found.clips.size(), 2u);
  EXPECT_EQ(found.clips[1].clip.path, "wavs/c001.wav");
  EXPECT_EQ(found.clips[1].clip.language, "en");
  EXPECT_EQ(found.clips[1].clip.speaker, "");
}

TEST(Dataset, KeepsTheTablesOfTheOriginalsApart) {
  const TestFolder folder;
  write_tone(folder / "wavs/p248_065_mic1.wav");
  write_text(folder / "metadata_train.csv",
             "\xEF\xBB\xBFid|transcription|normalized\r\n"
             "p248_065_mic1|A|a\r\np248_066_mic1|B|b\r\n");
  write_text(folder / "metadata_eval.csv", "LJ016-0244|C\n");
  const Found train = find(folder.path(), {.language = "en"});
  EXPECT_EQ(train.kind, LayoutKind::originals);
  EXPECT_NE(train.why.find("`metadata_eval.csv` is kept apart"), std::string::npos);
  ASSERT_EQ(train.clips.size(), 2u);
  EXPECT_EQ(train.clips[0].clip.text, "a");
  EXPECT_EQ(train.clips[0].clip.speaker, "p248");
  const Found eval = find(folder / "metadata_eval.csv");
  ASSERT_EQ(eval.clips.size(), 1u);
  EXPECT_EQ(eval.clips[0].clip.path, "wavs/LJ016-0244.wav");
  ASSERT_EQ(eval.notices.size(), 1u);
  EXPECT_EQ(eval.notices[0],
            "the language of 1 clips is not known, so their text is not cleaned; give --language");
}

TEST(Dataset, FindsCoqui) {
  const TestFolder folder;
  write_tone(folder / "clips/a.wav");
  write_text(folder / "metadata_train.csv", "audio_file|text|speaker_name\nclips/a.wav|Hi|Ann\n" +
                                                (folder / "clips/a.wav").string() + "|Hi|Bob\n");
  const Found found = find(folder.path());
  EXPECT_EQ(found.kind, LayoutKind::coqui);
  EXPECT_EQ(found.why, "Coqui: `metadata_train.csv` has a header with `audio_file`");
  ASSERT_EQ(found.clips.size(), 2u);
  EXPECT_EQ(found.clips[1].clip.path, "clips/a.wav") << "made relative to the root";
}

TEST(Dataset, FindsAManifestAndChoosesTheOneForTraining) {
  const TestFolder folder;
  const std::string line = "{\"audio_filepath\": \"a.wav\", \"text\": \"hi\", \"lang\": \"DE\"}\n";
  write_text(folder / "train_manifest.json", line);
  write_text(folder / "dev_manifest.json", line + line);
  const Found found = find(folder.path());
  EXPECT_EQ(found.kind, LayoutKind::nemo);
  ASSERT_EQ(found.clips.size(), 1u);
  EXPECT_EQ(found.clips[0].clip.language, "de");
  EXPECT_EQ(find(folder / "dev_manifest.json").clips.size(), 2u);
}

TEST(Dataset, AsksWhichOfSeveralManifests) {
  const TestFolder folder;
  write_text(folder / "a.jsonl", "{\"audio_filepath\": \"a.wav\"}\n");
  write_text(folder / "b.jsonl", "{\"audio_filepath\": \"a.wav\"}\n");
  const Error error = error_of([&] { detect_dataset(folder.path().string()); });
  EXPECT_EQ(error.what(),
            "`" + folder.path().string() + "` holds several manifests: `a.jsonl`, `b.jsonl`");
}

TEST(Dataset, FindsAudiofolders) {
  const TestFolder folder;
  write_text(folder / "metadata.jsonl", "{\"file_name\": \"a.wav\", \"transcription\": \"hi\"}\n");
  EXPECT_EQ(find(folder.path()).kind, LayoutKind::audiofolder);
  write_text(folder / "metadata.csv", "file_name,transcription\na.wav,hi\n");
  EXPECT_EQ(find(folder.path()).why,
            "Hugging Face audiofolder: `metadata.csv` has a header with `file_name`");
}

TEST(Dataset, FindsPairsInAnyDepthWithFoldersAsSpeakers) {
  const TestFolder folder;
  for (const char* name : {"ann/x/1", "ann/x/2", "bob/y/1", "bob/y/2"}) {
    write_tone(folder / (std::string(name) + ".wav"));
    write_text(folder / (std::string(name) + ".txt"), "\xEF\xBB\xBFtwo\r\nlines\r\n");
  }
  write_text(folder / ".hidden/z.txt", "no");
  write_text(folder / "ann/x/2.normalized.txt", "normalised");
  const Found found = find(folder.path());
  EXPECT_EQ(found.kind, LayoutKind::pairs);
  EXPECT_EQ(found.why, "sound and text files: 4 sounds and 5 text files, in pairs of one name");
  ASSERT_EQ(found.clips.size(), 4u);
  EXPECT_EQ(found.clips[0].clip.text, "two  lines");
  EXPECT_EQ(found.clips[0].clip.speaker, "x");
  EXPECT_EQ(found.clips[1].clip.text, "normalised");
}

TEST(Dataset, CountsATextInAnotherEncodingAmongPairs) {
  const TestFolder folder;
  write_tone(folder / "a.wav");
  write_text(folder / "a.txt", "caf\xE9");
  write_tone(folder / "b.wav");
  write_text(folder / "b.txt", "tea");
  write_tone(folder / "c.wav");
  const Found found = find(folder.path());
  ASSERT_EQ(found.clips.size(), 2u);
  EXPECT_EQ(found.clips[1].clip.text, "") << "c.wav has none";
  ASSERT_EQ(found.bad.size(), 1u);
  EXPECT_NE(found.bad[0].sentence.find("0xE9, is not UTF-8"), std::string::npos);
}

TEST(Dataset, FindsNamesWithLineEndsAndBytesOfNoEncoding) {
  const TestFolder folder;
  const std::string odd = "a\nb \xE9\xFF";
  write_tone(folder / (odd + ".wav"));
  write_text(folder / (odd + ".txt"), "hi");
  const Found found = find(folder.path());
  ASSERT_EQ(found.clips.size(), 1u);
  EXPECT_EQ(found.clips[0].clip.path, odd + ".wav");
}

TEST(Dataset, NamesAPathThatIsNotThere) {
  const Error error = error_of([] { detect_dataset("/nowhere/at/all"); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_STREQ(error.what(), "cannot read `/nowhere/at/all`: no such file or folder");
}

TEST(Dataset, SaysThatAFolderHoldsNothing) {
  const TestFolder folder;
  const Error error = error_of([&] { detect_dataset(folder.path().string()); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_EQ(error.what(), "`" + folder.path().string() + "` holds no sound and no table of clips");
  write_text(folder / "train/metadata.csv", "a|b\n");
  EXPECT_EQ(error_of([&] { detect_dataset(folder.path().string()); }).hint(),
            "tandem prepare \"" + (folder / "train").string() + "\"");
}

TEST(Dataset, SaysThatSoundsHaveNoText) {
  const TestFolder folder;
  write_tone(folder / "a.wav");
  EXPECT_EQ(error_of([&] { detect_dataset(folder.path().string()); }).what(),
            "`" + folder.path().string() +
                "` holds 1 sounds but nothing that says what is spoken in them");
  EXPECT_EQ(error_of([&] { detect_dataset((folder / "a.wav").string()); }).what(),
            "`" + (folder / "a.wav").string() + "` is one sound; expected a dataset");
}

TEST(Dataset, ShowsTheFirstBadRowWhenAllAreBad) {
  const TestFolder folder;
  const std::string path = folder.write("metadata.csv", "id|text\nx\ny\n");
  const Error error = error_of([&] { find(folder.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_EQ(error.what(), "`" + path + "` holds no clip; the first of 2 bad rows, " + path +
                              ":2: the line has no `|`; expected `id|text` or `id|text|normalised "
                              "text`");
}

TEST(Dataset, RefusesAnUnknownLanguageAndTakesOneFromAColumn) {
  const TestFolder folder;
  write_text(folder / "metadata.csv", "file_name,text,language\na.wav,hi,en-US\nb.wav,ho,xx\n");
  const Found found = find(folder.path());
  EXPECT_EQ(found.clips[0].clip.language, "en");
  EXPECT_EQ(found.clips[1].clip.language, "xx");
  EXPECT_EQ(find(folder.path(), {.language = "fr"}).clips[0].clip.language, "fr");
  EXPECT_EQ(error_of([&] { find(folder.path(), {.language = "klingon"}); }).kind(),
            ErrorKind::data);
}

}  // namespace
}  // namespace tandem
