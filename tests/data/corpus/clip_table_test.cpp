#include "data/corpus/clip_table.h"

#include <gtest/gtest.h>

#include "data/corpus/clip_object.h"
#include "support/captured.h"

namespace tandem {
namespace {

Rows read(const std::string& text, const std::string& name = "m.csv") {
  const TextTable table = check_table(text, name);
  return read_rows(table, recognise_table(table));
}
std::string sentence(const std::string& text) {
  return error_of([&] { read(text); }).what();
}

TEST(ClipTable, TakesTheTextBetweenTheLastBarAndTheEnd) {
  const Rows rows = read("LJ001-0001|Mr. A|Mister A\nLJ001-0002|only text\nx|a|b|c|d\ny|raw|\n");
  ASSERT_EQ(rows.clips.size(), 4u);
  EXPECT_EQ(rows.clips[0].clip.id, "LJ001-0001");
  EXPECT_EQ(rows.clips[0].clip.text, "Mister A");
  EXPECT_EQ(rows.clips[1].clip.text, "only text");
  EXPECT_EQ(rows.clips[2].clip.text, "d");
  EXPECT_EQ(rows.clips[3].clip.text, "raw");
}

TEST(ClipTable, SkipsTheHeadersOfTheOriginals) {
  for (const char* header :
       {"id|transcription|normalized", "fileid|text", "wav_id|text", "ID|Text"}) {
    const Rows rows = read(std::string(header) + "\nid|the word id\n");
    ASSERT_EQ(rows.clips.size(), 1u) << header;
    EXPECT_EQ(rows.clips[0].clip.text, "the word id");
  }
}

TEST(ClipTable, CountsRowsThatNameNoClipAndGoesOn) {
  const Rows rows = read("a|one\nno bar here\n\n|two\nb|three\n");
  EXPECT_EQ(rows.clips.size(), 2u);
  ASSERT_EQ(rows.bad.size(), 2u);
  EXPECT_EQ(rows.bad[0].where, "m.csv:2");
  EXPECT_EQ(rows.bad[0].sentence,
            "the line has no `|`; expected `id|text` or `id|text|normalised text`");
  EXPECT_EQ(rows.bad[1].where, "m.csv:4");
  EXPECT_EQ(rows.bad[1].sentence, "the id before the first `|` is empty");
}

TEST(ClipTable, ReadsCoquiByItsHeader) {
  const Rows rows =
      read("audio_file|text|speaker_name|emotion_name\nwavs/a.wav|Hello.|Ann|happy\n");
  ASSERT_EQ(rows.clips.size(), 1u);
  EXPECT_EQ(rows.clips[0].clip.path, "wavs/a.wav");
  EXPECT_EQ(rows.clips[0].clip.id, "wavs/a");
  EXPECT_EQ(rows.clips[0].clip.text, "Hello.");
  EXPECT_EQ(rows.clips[0].clip.speaker, "Ann");
}

TEST(ClipTable, FindsColumnsInAnyOrderWithAnySeparator) {
  const Rows rows = read("language,transcription,file_name\nde,\"Ja, gern\",a.flac\n");
  ASSERT_EQ(rows.clips.size(), 1u);
  EXPECT_EQ(rows.clips[0].clip.text, "Ja, gern");
  EXPECT_EQ(rows.clips[0].clip.language, "de");
  const Rows tabs = read("client_id\tpath\tsentence\ns1\tx.mp3\tHi\n");
  ASSERT_EQ(tabs.clips.size(), 1u);
  EXPECT_EQ(tabs.clips[0].clip.speaker, "s1");
}

TEST(ClipTable, CountsRowsWithTooFewColumns) {
  const Rows rows = read("file_name,text\na.wav,hello\nb.wav\n,hello\n");
  EXPECT_EQ(rows.clips.size(), 1u);
  ASSERT_EQ(rows.bad.size(), 2u);
  EXPECT_EQ(rows.bad[0].sentence, "the row has 1 columns; the header names 2");
  EXPECT_EQ(rows.bad[1].where, "m.csv:4");
  EXPECT_EQ(rows.bad[1].sentence, "the column `file_name` is empty");
}

TEST(ClipTable, NamesAMissingTextColumn) {
  EXPECT_EQ(sentence("file_name,label\na.wav,3\n"),
            "m.csv:1: the table has no column of text; expected one of `text`, `transcription`, "
            "`sentence`, `transcript`, `normalized_text`, `normalised_text`, found `file_name`, "
            "`label`");
}

TEST(ClipTable, AsksForAHeader) {
  EXPECT_EQ(sentence("a.wav,hello there\n"),
            "m.csv:1: neither `id|text` nor a header that names a column of files (one of "
            "`audio_file`, `file_name`, `audio_filepath`, `audio_path`, `path`) and one of text");
  EXPECT_EQ(sentence("wavs/a.wav|hello there|ann\nwavs/b.wav|hello you|ann\n"),
            "m.csv:1: the columns look like file, text and speaker, but no header names them; "
            "expected `audio_file|text|speaker_name` as the first line");
}

TEST(ClipTable, SaysThatATableIsEmpty) {
  EXPECT_EQ(sentence(""), "`m.csv` holds no clip: it is empty");
  EXPECT_EQ(sentence("\n \r\n"), "`m.csv` holds no clip: it is empty");
}

TEST(ClipTable, ReadsManifestsWithParts) {
  const Rows rows = read(
      "{\"audio_filepath\": \"a.wav\", \"text\": \"hi\", \"duration\": 2.5, \"speaker\": 7}\n"
      "{\"audio_filepath\": \"a.wav\", \"text\": \"ho\", \"duration\": 1.5, \"offset\": 2.25}\n");
  ASSERT_EQ(rows.clips.size(), 2u);
  EXPECT_EQ(rows.clips[0].seconds, 0);
  EXPECT_EQ(rows.clips[0].clip.speaker, "7");
  EXPECT_EQ(rows.clips[1].start, 2.25);
  EXPECT_EQ(rows.clips[1].seconds, 1.5);
  EXPECT_EQ(rows.clips[1].clip.id, "a@2.250");
}

TEST(ClipTable, CountsObjectsThatAreNone) {
  const Rows rows = read(
      "{\"file_name\": \"a.wav\", \"text\": \"hi\"}\n{broken\n{\"text\": \"x\"}\n[1]\n"
      "{\"file_name\": \"b.wav\", \"offset\": \"soon\"}\n{\"file_name\": \"c\\u0000.wav\"}\n" +
      std::string(100, '[') + "\n");
  EXPECT_EQ(rows.clips.size(), 1u);
  ASSERT_EQ(rows.bad.size(), 6u);
  EXPECT_EQ(rows.bad[0].where, "m.csv:2");
  EXPECT_EQ(rows.bad[0].sentence, "the line is no JSON object");
  EXPECT_EQ(rows.bad[1].sentence,
            "the object names no file; expected `audio_file` or `file_name` or `audio_filepath` or "
            "`audio_path` or `path`");
  EXPECT_EQ(rows.bad[3].sentence, "`offset` is `\"soon\"`; expected seconds");
  EXPECT_EQ(rows.bad[4].sentence, "a value holds a NUL character");
  EXPECT_EQ(rows.bad[5].sentence, "the line is no JSON object");
}

TEST(ClipTable, RefusesAJsonArray) {
  EXPECT_EQ(sentence("[\n{}\n]\n"), "m.csv:1: a JSON array; expected one object a line");
}

}  // namespace
}  // namespace tandem
