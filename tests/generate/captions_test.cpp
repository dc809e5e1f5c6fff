#include "generate/captions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "support/captured.h"
#include "support/temporary_folder.h"

namespace tandem {
namespace {

Captions captions_of(const std::string& text, const std::string& ending = ".csv",
                     const CaptionColumns& columns = {}) {
  return parse_captions(check_table(text, "captions" + ending), ending, columns);
}
std::string refusal(const std::string& text, const std::string& ending = ".csv",
                    const CaptionColumns& columns = {}) {
  const Error error = error_of([&] { captions_of(text, ending, columns); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  return error.what();
}
std::vector<std::string> names_of(const Captions& captions) {
  std::vector<std::string> names;
  for (const Caption& caption : captions.rows) names.push_back(caption.name);
  return names;
}
std::vector<std::string> texts_of(const Captions& captions) {
  std::vector<std::string> texts;
  for (const Caption& caption : captions.rows) texts.push_back(caption.text);
  return texts;
}
using Texts = std::vector<std::string>;

TEST(Captions, ReadsQuotesNewlinesEmojiAndOddIds) {
  const Captions captions = captions_of(
      "\xEF\xBB\xBFid,aspect_list,text\r\n"
      "-a,\"['slow', \"\"sad\"\"]\",\"two\r\nlines, and \"\"quotes\"\"\"\r\n"
      "../b,,🎹 piano\r\n"
      "-a,x,\r\n");
  EXPECT_EQ(captions.columns, (Texts{"id", "aspect_list", "text"}));
  EXPECT_EQ(texts_of(captions), (Texts{"two\r\nlines, and \"quotes\"", "🎹 piano", ""}));
  EXPECT_EQ(names_of(captions), (Texts{"_-a", "_.._b", "_-a_2"}));
  EXPECT_EQ(captions.rows[0].fields[1], "['slow', \"sad\"]");
  EXPECT_EQ(captions.rows[2].row, 2);
}

TEST(Captions, ReadsTheSameFromTsvJsonlAndTxt) {
  const Captions tsv = captions_of("id\ttext\n1\tone, two\n2\t\"a \"\"b\"\"\"\n", ".tsv");
  EXPECT_EQ(texts_of(tsv), (Texts{"one, two", "a \"b\""}));
  const Captions jsonl = captions_of(
      "{\"id\": 7, \"text\": \"caf\\u00e9\"}\n\n{\"text\": null, \"id\": \"x\", \"tags\": [1]}\n",
      ".jsonl");
  EXPECT_EQ(texts_of(jsonl), (Texts{"café", ""}));
  EXPECT_EQ(names_of(jsonl), (Texts{"7", "x"}));
  EXPECT_EQ(jsonl.columns, (Texts{"id", "text", "tags"}));
  EXPECT_EQ(jsonl.rows[0].fields, (Texts{"7", "café", ""}));
  EXPECT_EQ(jsonl.rows[1].fields, (Texts{"x", "", "[1]"}));
  const Captions txt = captions_of("calm piano\r\n\n  drums, loud \n", ".txt");
  EXPECT_EQ(texts_of(txt), (Texts{"calm piano", "drums, loud"}));
  EXPECT_EQ(names_of(txt), (Texts{"000001", "000002"}));
}

TEST(Captions, AMissingColumnIsNamedWithThoseThereAre) {
  EXPECT_EQ(refusal("id,caption\n1,a\n", ".csv", {.text = "captoin"}),
            "`captions.csv` has no column `captoin`; it has `id`, `caption`. Did you mean "
            "`caption`?");
  EXPECT_EQ(refusal("ytid,text\n1,a\n"),
            "`captions.csv` has no column `id`; it has `ytid`, `text`. Did you mean `ytid`?");
  EXPECT_NE(
      refusal("id,text\n1,a\n", ".csv", {.audio_prompt = "melody"}).find("no column `melody`"),
      std::string::npos);
  EXPECT_EQ(refusal("id,text,text\n1,a,b\n"), "`captions.csv` names the column `text` twice");
  EXPECT_NE(refusal("{\"id\": 1}\n", ".jsonl").find("has no column `text`; it has `id`"),
            std::string::npos);
}

TEST(Captions, RefusesWhatIsNoTableWithFileAndLine) {
  EXPECT_EQ(refusal("id,text\n1,a\n2,b,c\n"),
            "captions.csv:3: the row has 3 fields; its first line names 2 columns");
  EXPECT_EQ(refusal("id,text\n1,\"a\nb\"\n2\n"),
            "captions.csv:4: the row ends after 1 of 2 fields, before its caption");
  EXPECT_EQ(refusal("id,text\n"), "`captions.csv` holds no caption");
  EXPECT_EQ(refusal(""), "`captions.csv` holds no caption");
  EXPECT_EQ(refusal("\n \n", ".txt"), "`captions.txt` holds no caption");
  EXPECT_EQ(refusal("{\"id\": 1, \"text\": \"a\"}\n{\"id\": 2}\n", ".jsonl"),
            "captions.jsonl:2: the object has no `text`; others of the file do");
  EXPECT_NE(refusal("{\"id\": 1, \"text\": \"a\"}\n[1]\n", ".jsonl").find("captions.jsonl:2: "),
            std::string::npos);
  EXPECT_NE(refusal("{\"id\": 1, \"text\": \"\\ud800\"}\n", ".jsonl").find("no JSON object"),
            std::string::npos);
  EXPECT_NE(refusal("id,text\n1,\"never closed\n").find("never closes"), std::string::npos);
  EXPECT_EQ(refusal("a", ".parquet"),
            "`captions.parquet` ends in `.parquet`; captions come as .csv, .tsv, .jsonl or .txt");
}

TEST(Captions, RefusesOtherEncodingsWithAWayOut) {
  TestFolder folder;
  const auto error = [&](const std::string& bytes) {
    const std::string path = folder.write("c.csv", bytes);
    return error_of([&] { read_captions(path, {}); });
  };
  const Error windows = error("id,text\n1,caf\xE9\n");
  EXPECT_EQ(windows.kind(), ErrorKind::data);
  EXPECT_NE(std::string(windows.what()).find("c.csv:2: "), std::string::npos);
  EXPECT_NE(windows.hint().find("iconv -f WINDOWS-1252"), std::string::npos);
  EXPECT_NE(std::string(error(std::string("id,text\n1,a\0b\n", 14)).what()).find("is NUL"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { read_captions(folder / "none.csv", {}); }).kind(), ErrorKind::io);
}

TEST(Captions, AShareIsDrawnBySeedAndKeepsOrderAndNames) {
  std::string text = "id,text\n";
  for (int i = 0; i < 200; ++i) text += std::to_string(i % 50) + ",t" + std::to_string(i) + "\n";
  const Captions all = captions_of(text);
  const Captions half = captions_of(text, ".csv", {.fraction = 0.5});
  const Captions fifth = captions_of(text, ".csv", {.fraction = 0.2});
  ASSERT_EQ(half.rows.size(), 100);
  ASSERT_EQ(fifth.rows.size(), 40);
  std::set<int64_t> of_half;
  for (size_t i = 0; i < half.rows.size(); ++i) {
    of_half.insert(half.rows[i].row);
    EXPECT_TRUE(i == 0 || half.rows[i - 1].row < half.rows[i].row);
    EXPECT_EQ(half.rows[i].name, all.rows[static_cast<size_t>(half.rows[i].row)].name);
  }
  for (const Caption& caption : fifth.rows) EXPECT_TRUE(of_half.contains(caption.row));
  EXPECT_EQ(names_of(captions_of(text, ".csv", {.fraction = 0.5})), names_of(half));
  EXPECT_NE(names_of(captions_of(text, ".csv", {.fraction = 0.5, .seed = 1})), names_of(half));
  EXPECT_EQ(captions_of(text, ".csv", {.fraction = 0.0001}).rows.size(), 1);
  for (const double fraction : {0.0, -1.0, 1.5}) {
    const Error error = error_of([&] { captions_of(text, ".csv", {.fraction = fraction}); });
    EXPECT_EQ(error.kind(), ErrorKind::config);
  }
}

TEST(Captions, LooksForAudioPromptsBesideTheFile) {
  TestFolder folder;
  folder.write("sub/a.wav", "x");
  const std::string path = folder.write("sub/c.csv", "id,text,sound\n1,t,a.wav\n2,t,b.wav\n3,t,\n");
  const Captions captions = read_captions(path, {.audio_prompt = "sound"});
  EXPECT_EQ(captions.rows[0].audio_prompt, (folder / "sub/a.wav").string());
  EXPECT_EQ(captions.rows[1].audio_prompt, "b.wav");
  EXPECT_EQ(captions.rows[2].audio_prompt, "");
}

TEST(Captions, PromptsAreNamedAfterTheirFirstWords) {
  const Captions captions = captions_of_prompts(
      {"80s  pop, with bass!", "a/b", "", "80s pop, with bass!", fmt::format("{:x>50} 🎹🎹🎹🎹", "")});
  EXPECT_EQ(names_of(captions), (Texts{"80s_pop,_with_bass!", "a_b", "clip",
                                       "80s_pop,_with_bass!_2", fmt::format("{:x>50}_🎹🎹", "")}));
  EXPECT_EQ(captions.rows[0].text, "80s  pop, with bass!");
  EXPECT_EQ(captions.rows[0].fields, (Texts{"80s_pop,_with_bass!", "80s  pop, with bass!"}));
  EXPECT_EQ(error_of([] { captions_of_prompts({"\xFF"}); }).kind(), ErrorKind::data);
}

TEST(Captions, CsvLinesAreReadAsTheyWereWritten) {
  const std::vector<Texts> rows = {{"id", "text"},   {"a\"b", "x,y"},  {"\n", "\r\n"},
                                   {"", " spaced "}, {"-1", "=1+1 🎹"}, {"", ""}};
  std::string text;
  for (const Texts& row : rows) text += csv_line(row);
  const TextTable table = check_table(text, "t");
  Records reader(table, ',');
  Record record;
  for (const Texts& row : rows) {
    ASSERT_TRUE(reader.next(record));
    EXPECT_EQ(record.fields, row);
  }
  EXPECT_FALSE(reader.next(record));
  EXPECT_EQ(csv_line({""}), "\"\"\n");
}

TEST(Captions, AFilenameColumnOfTheInputDoesNotHideOurs) {
  EXPECT_EQ(metadata_columns({"id", "text"}), (Texts{"id", "text", "filename"}));
  EXPECT_EQ(metadata_columns({"id", "filename"}), (Texts{"id", "input_filename", "filename"}));
  EXPECT_EQ(metadata_columns({"filename", "input_filename"}),
            (Texts{"input_input_filename", "input_filename", "filename"}));
}

}  // namespace
}  // namespace tandem
