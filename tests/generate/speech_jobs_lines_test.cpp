#include "generate/speech_jobs_lines.h"

#include <gtest/gtest.h>

#include "support/captured.h"
#include "support/temporary_folder.h"

namespace tandem {
namespace {

std::vector<SpeechLine> lines_of(const std::string& text, const std::string& ending) {
  return speech_lines(check_table(text, "texts" + ending), ending);
}

std::vector<std::string> names_of(const std::vector<SpeechLine>& lines) {
  std::vector<std::string> names;
  for (const SpeechLine& line : lines) names.push_back(line.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(SpeechLines, ReadsAPlainFileALineEach) {
  const auto lines = lines_of("one\r\n\n  two  \nthree", ".txt");
  ASSERT_EQ(lines.size(), 3);
  EXPECT_EQ(lines[1].text, "two");
  EXPECT_EQ(lines[1].line, 3);
  EXPECT_EQ(names_of(lines), (Names{"000001", "000002", "000003"}));
}

TEST(SpeechLines, ReadsColumnsByName) {
  const auto lines =
      lines_of("voice,Text,id,language,more\na.wav;b.wav,\"Hi, you\",x,de,1\n,there,,,2\n", ".csv");
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[0].text, "Hi, you");
  EXPECT_EQ(lines[0].voice, (Names{"a.wav", "b.wav"}));
  EXPECT_EQ(lines[0].language, "de");
  EXPECT_EQ(names_of(lines), (Names{"x", "000002"}));
  EXPECT_EQ(lines_of("id\ttext\n1\tone\n", ".tsv")[0].text, "one");
}

TEST(SpeechLines, ReadsObjects) {
  const auto lines = lines_of(
      "{\"id\": 7, \"text\": \"one\", \"speaker\": \"Ana\"}\n"
      "{\"text\": \"two\", \"voice\": [\"a.wav\", \"b;c.wav\"]}\n",
      ".jsonl");
  EXPECT_EQ(lines[0].id, "7");
  EXPECT_EQ(lines[0].speaker, "Ana");
  EXPECT_EQ(lines[1].voice, (Names{"a.wav", "b;c.wav"}));
}

TEST(SpeechLines, NeverGivesTwoLinesOneName) {
  const auto lines =
      lines_of("id,text\na,1\na,2\na_2,3\na,4\n../b,5\n.hidden,6\n,7\n000007,8\n", ".csv");
  EXPECT_EQ(names_of(lines),
            (Names{"a", "a_2", "a_2_2", "a_3", "_._b", "_hidden", "000007", "000007_2"}));
  const auto endless = lines_of("id,text\n" + std::string(999, 'x') + ",1\n", ".csv");
  EXPECT_EQ(endless[0].name.size(), 180);
}

TEST(SpeechLines, SaysWhatIsWrongWithALineAndGoesOn) {
  const auto lines = lines_of(
      "{\"text\": \"\"}\nnot json\n[1]\n{\"text\": 1.5}\n{\"text\": \"a\", \"voice\": [1]}\n"
      "{\"text\": \"a\", \"voice\": \"a.wav\", \"speaker\": \"Ana\"}\n{\"text\": \"good\"}\n",
      ".jsonl");
  Names problems;
  for (const SpeechLine& line : lines) problems.push_back(line.problem);
  EXPECT_EQ(problems, (Names{"it has no text", "it is no JSON object", "it is no JSON object",
                             "`text` is no text", "`voice` is no list of texts",
                             "it names a speaker and a recording; expected one of them", ""}));
  EXPECT_EQ(lines_of("id,text\n1,a,b\n", ".csv")[0].problem,
            "it has 3 fields, the first line names 2");
}

TEST(SpeechLines, RefusesAFileWithoutTexts) {
  const Error none = error_of([] { lines_of("\n \n", ".txt"); });
  EXPECT_EQ(none.kind(), ErrorKind::data);
  const Error column = error_of([] { lines_of("id,words\n1,a\n", ".csv"); });
  EXPECT_STREQ(column.what(), "`texts.csv` has no column `text` among `id`, `words`");
  EXPECT_EQ(error_of([] { read_speech_lines("/none/there.txt"); }).kind(), ErrorKind::io);
}

TEST(SpeechLines, LooksForARecordingBesideTheFile) {
  TestFolder folder;
  folder.write("set/a.wav", "x");
  const std::string file = folder.write("set/texts.csv", "text,voice\nhi,a.wav\nho,b.wav\n");
  const auto lines = read_speech_lines(file);
  EXPECT_EQ(lines[0].voice, Names{(folder / "set/a.wav").string()});
  EXPECT_EQ(lines[1].voice, Names{"b.wav"});
}

}  // namespace
}  // namespace tandem
