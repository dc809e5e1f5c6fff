#include "data/corpus/scan_journal.h"

#include <gtest/gtest.h>

#include "data/corpus/corpus_files.h"
#include "support/captured.h"
#include "util/child.h"

namespace tandem {
namespace {

using tests::read_text;
using tests::write_text;

struct Places {
  TestFolder folder;
  std::string partial = (folder / "x.partial").string(), finished = (folder / "x.scan").string();
};

JournalRecord record(const std::string& path) {
  JournalRecord made;
  made.key = {.path = path, .offset = 512, .start = 1.5, .seconds = 2, .bytes = 99, .modified = 7};
  made.facts = {.frames = 5,
                .first_frame = 2,
                .sample_rate = 16000,
                .channels = 2,
                .part = true,
                .decoded = true,
                .peak = .5f,
                .clipping = .1f,
                .silence = .2f,
                .dc = .3f,
                .rms = -20,
                .loudness = -19,
                .fingerprint = 42,
                .format = "wav pcm16"};
  made.fault = 3;
  made.detail = "why";
  return made;
}

TEST(ScanJournal, RemembersWhatWasAdded) {
  const Places places;
  { ScanJournal(places.partial, places.finished).add(record("a")); }
  EXPECT_LT(read_text(places.partial).size(), 100u) << "not flushed";
  {
    ScanJournal journal(places.partial, places.finished);
    journal.add(record("a\nb"));
    journal.flush();
  }
  const ScanJournal journal(places.partial, places.finished);
  const JournalRecord* found = journal.find(record("a\nb").key);
  ASSERT_TRUE(found);
  EXPECT_EQ(journal_bytes(*found), journal_bytes(record("a\nb")));
  EXPECT_EQ(found->facts.format, "wav pcm16");
  EXPECT_EQ(found->facts.fingerprint, 42u);
  EXPECT_EQ(found->detail, "why");
}

TEST(ScanJournal, ForgetsAFileThatChanged) {
  const Places places;
  ScanJournal journal(places.partial, places.finished);
  journal.finish({record("a")});
  const ScanJournal next(places.partial, places.finished);
  SoundKey key = record("a").key;
  EXPECT_TRUE(next.find(key));
  key.bytes = 100;
  EXPECT_FALSE(next.find(key));
  key = record("a").key;
  key.modified = 8;
  EXPECT_FALSE(next.find(key));
  key = record("a").key;
  key.start = 1;
  EXPECT_FALSE(next.find(key)) << "another part of the same file";
}

TEST(ScanJournal, GoesOnBehindATornEnd) {
  const Places places;
  const std::string whole = journal_header() + journal_bytes(record("a"));
  for (const size_t torn : {size_t{1}, size_t{20}, journal_bytes(record("b")).size() - 1}) {
    write_text(places.partial, whole + journal_bytes(record("b")).substr(0, torn));
    {
      ScanJournal journal(places.partial, places.finished);
      EXPECT_TRUE(journal.find(record("a").key));
      EXPECT_FALSE(journal.find(record("b").key));
      journal.add(record("c"));
      journal.flush();
    }
    EXPECT_EQ(read_text(places.partial), whole + journal_bytes(record("c"))) << torn;
  }
}

TEST(ScanJournal, NoticesEveryFlippedByteOfARecord) {
  const std::string whole = journal_header() + journal_bytes(record("a"));
  for (size_t at = journal_header().size(); at < whole.size(); ++at) {
    std::string bad = whole;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    std::vector<JournalRecord> records;
    size_t good = 0;
    EXPECT_EQ(read_journal(bad, records, good), JournalState::good);
    EXPECT_TRUE(records.empty()) << at;
  }
}

TEST(ScanJournal, IgnoresAnotherVersionWithASentence) {
  const Places places;
  std::string old = journal_header() + journal_bytes(record("a"));
  old[12] = 77;
  write_text(places.partial, old);
  const ScanJournal journal(places.partial, places.finished);
  EXPECT_FALSE(journal.find(record("a").key));
  ASSERT_EQ(journal.notices().size(), 1u);
  EXPECT_EQ(journal.notices()[0],
            "`" + places.partial + "` was written by another version: its work is done anew");
}

TEST(ScanJournal, StartsAnewOverAFileThatIsNoJournal) {
  const Places places;
  write_text(places.partial, "something else entirely");
  ScanJournal journal(places.partial, places.finished);
  EXPECT_TRUE(journal.notices().empty());
  EXPECT_EQ(read_text(places.partial), journal_header());
}

TEST(ScanJournal, LeavesNothingBehindWhenNothingWasLearned) {
  const Places places;
  { const ScanJournal journal(places.partial, places.finished); }
  EXPECT_FALSE(std::filesystem::exists(places.partial));
}

TEST(ScanJournal, KeepsTwoProcessesApart) {
  const Places places;
  const ScanJournal journal(places.partial, places.finished);
  const tests::ChildEnd end =
      tests::in_child([&] { const ScanJournal second(places.partial, places.finished); });
  EXPECT_EQ(end.code, 99);
  EXPECT_EQ(end.err, "thrown: another process is preparing the same index: `" + places.partial +
                         "` is in use\n");
  EXPECT_TRUE(std::filesystem::exists(places.partial));
}

TEST(ScanJournal, SaysThatItCannotBeWritten) {
  const Error error = error_of([] { ScanJournal("/nowhere/x.partial", "/nowhere/x.scan"); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_STREQ(error.what(), "cannot write `/nowhere/x.partial`: No such file or directory");
}

}  // namespace
}  // namespace tandem
