#include "data/corpus/tar_archive.h"

#include <gtest/gtest.h>

#include "data/corpus/corpus_files.h"
#include "data/corpus/dataset.h"
#include "support/captured.h"

namespace tandem {
namespace {

using tests::tar_end;
using tests::tar_member;
using tests::write_text;

struct Walked {
  std::vector<TarMember> members;
  std::string ended;
};
Walked walk(const TestFolder& folder, const std::string& bytes) {
  write_text(folder / "t.tar", bytes);
  Walked walked;
  TarReader reader((folder / "t.tar").string());
  walked.ended = reader.walk([&](const TarMember& member) { walked.members.push_back(member); });
  return walked;
}

TEST(Tar, FindsMembersAndWhereTheyStand) {
  const TestFolder folder;
  const Walked walked =
      walk(folder, tar_member("d/", "", '5') + tar_member("d/a.txt", "hello") +
                       tar_member("link", "", '2') + tar_member("b", "x") + tar_end());
  EXPECT_EQ(walked.ended, "");
  ASSERT_EQ(walked.members.size(), 2u);
  EXPECT_EQ(walked.members[0].name, "d/a.txt");
  EXPECT_EQ(walked.members[0].offset, 1024);
  EXPECT_EQ(walked.members[0].bytes, 5);
  TarReader reader((folder / "t.tar").string());
  EXPECT_EQ(reader.read(walked.members[0]), "hello");
}

TEST(Tar, ReadsLongNamesOfBothKinds) {
  const TestFolder folder;
  const std::string name(300, 'n');
  std::string pax = " path=" + name + "p\n";
  pax = std::to_string(pax.size() + 3) + pax;
  const Walked walked =
      walk(folder, tar_member("././@LongLink", name + "g" + std::string(1, '\0'), 'L') +
                       tar_member("short", "1") + tar_member("PaxHeader", pax, 'x') +
                       tar_member("short", "2") + tar_member("plain", "3") + tar_end());
  ASSERT_EQ(walked.members.size(), 3u);
  EXPECT_EQ(walked.members[0].name, name + "g");
  EXPECT_EQ(walked.members[1].name, name + "p");
  EXPECT_EQ(walked.members[2].name, "plain");
}

TEST(Tar, ReadsWhatTheTarProgramWrites) {
  const TestFolder folder;
  const std::string name = std::string(120, 'd') + "/" + std::string(150, 'f') + ".txt";
  write_text(folder / ("in/" + name), "text");
  for (const char* format : {"gnu", "pax", "ustar"}) {
    const std::string command = "cd " + (folder / "in").string() + " && tar --format=" + format +
                                " -cf ../t.tar " + std::string(120, 'd') + " 2>/dev/null";
    if (std::string(format) == "ustar") std::filesystem::resize_file(folder / "t.tar", 0);
    const int code = std::system(command.c_str());
    if (std::string(format) == "ustar" && code != 0) continue;  // it cannot hold such a name
    TarReader reader((folder / "t.tar").string());
    std::vector<std::string> names;
    EXPECT_EQ(reader.walk([&](const TarMember& member) { names.push_back(member.name); }), "");
    EXPECT_EQ(names, std::vector<std::string>{name}) << format;
  }
}

TEST(Tar, StopsAtWhatIsDamaged) {
  const TestFolder folder;
  const std::string good = tar_member("a", "1");
  std::string wrong_sum = tar_member("b", "2");
  wrong_sum[0] = 'c';
  EXPECT_EQ(walk(folder, good + wrong_sum).ended, "the header at byte 1024 is damaged");
  EXPECT_EQ(walk(folder, good + wrong_sum).members.size(), 1u);
  EXPECT_EQ(walk(folder, good + tar_member("b", "2", '0', 1 << 30)).ended,
            "`b` at byte 1024 runs past the end of the tar");
  EXPECT_EQ(walk(folder, good + good.substr(0, 100)).ended,
            "the tar ends in the middle of a header at byte 1024");
  EXPECT_EQ(walk(folder, good + tar_member("x", std::string(2 << 20, 'y'), 'L')).ended,
            "the header at byte 1024 claims a name of 2097152 bytes");
  EXPECT_EQ(walk(folder, good).ended, "") << "no closing blocks";
  EXPECT_EQ(walk(folder, "").ended, "");
}

TEST(Tar, RefusesSizesThatOverflow) {
  const TestFolder folder;
  std::string pax = " size=9223372036854775807\n";
  pax = std::to_string(pax.size() + 2) + pax;
  const std::string bytes = tar_member("h", pax, 'x') + tar_member("a", "1");
  EXPECT_EQ(walk(folder, bytes).ended, "`a` at byte 1024 runs past the end of the tar");
  std::string negative = tar_member("h", "13 size=-512\n", 'x') + tar_member("a", "1");
  EXPECT_EQ(walk(folder, negative).ended, "the header at byte 1024 is damaged");
  for (const char* record : {"99999999 path=x\n", "0 path=x\n", "-4 path=x\n", "x\n", "7", ""}) {
    const Walked walked = walk(folder, tar_member("h", record, 'x') + tar_member("a", "1"));
    ASSERT_EQ(walked.members.size(), 1u) << record;
    EXPECT_EQ(walked.members[0].name, "a") << record;
  }
}

TEST(Tar, NamesAFileThatIsNotThere) {
  EXPECT_EQ(error_of([] { TarReader("/nowhere.tar"); }).kind(), ErrorKind::io);
}

TEST(WebDataset, JoinsTheMembersOfASampleInAnyOrder) {
  const TestFolder folder;
  tests::write_tone(folder / "tone.wav");
  const std::string sound = tests::read_text(folder / "tone.wav");
  std::filesystem::remove(folder / "tone.wav");
  write_text(
      folder / "s-0.tar",
      tar_member("x/a.wav", sound) + tar_member("x/b.wav", sound) +
          tar_member("x/b.json", "{\"text\": \"bee\", \"speaker\": \"S\", \"language\": \"de\"}") +
          tar_member("x/a.txt", "ay\n") + tar_member("x/c.txt", "no sound") +
          tar_member("../../etc/d.flac", sound) + tar_member("x/a.wav", sound) + tar_end());
  const DatasetLayout layout = detect_dataset(folder.path().string());
  EXPECT_EQ(layout.kind, LayoutKind::webdataset);
  EXPECT_EQ(layout.why, "WebDataset: `s-0.tar` is a tar");
  const Dataset dataset = read_dataset(layout);
  ASSERT_EQ(dataset.clips.size(), 3u);
  EXPECT_EQ(dataset.clips[0].clip.id, "x/a");
  EXPECT_EQ(dataset.clips[0].clip.text, "ay");
  EXPECT_EQ(dataset.clips[0].clip.path, "s-0.tar");
  EXPECT_EQ(dataset.clips[0].clip.offset, 512);
  EXPECT_EQ(dataset.clips[0].clip.bytes, static_cast<int64_t>(sound.size()));
  EXPECT_EQ(dataset.clips[1].clip.text, "bee");
  EXPECT_EQ(dataset.clips[1].clip.speaker, "S");
  EXPECT_EQ(dataset.clips[1].clip.language, "de");
  EXPECT_EQ(dataset.clips[2].clip.path, "s-0.tar") << "a name in a tar is never a path";
  ASSERT_EQ(dataset.bad_rows.size(), 2u);
  EXPECT_EQ(dataset.bad_rows[0].sentence, "the sample has two sounds; the first is used");
  EXPECT_EQ(dataset.bad_rows[1].sentence, "no sound has this key");
}

TEST(WebDataset, KeepsWhatStandsBeforeTheDamage) {
  const TestFolder folder;
  write_text(folder / "s.tar", tar_member("a.wav", "1") + tar_member("a.txt", "bad \xE9") +
                                   tar_member("b.json", "{") +
                                   tar_member("c.wav", "", '0', 1 << 30));
  const Dataset dataset = read_dataset(detect_dataset((folder / "s.tar").string()));
  EXPECT_EQ(dataset.clips.size(), 1u);
  ASSERT_EQ(dataset.bad_rows.size(), 4u);
  EXPECT_EQ(dataset.bad_rows[0].sentence, "the text is not UTF-8");
  EXPECT_EQ(dataset.bad_rows[1].sentence, "the line is no JSON object");
  EXPECT_NE(dataset.bad_rows[2].sentence.find("runs past the end"), std::string::npos);
}

}  // namespace
}  // namespace tandem
