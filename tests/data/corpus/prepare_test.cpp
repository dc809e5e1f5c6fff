#include "data/corpus/prepare.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "data/corpus/corpus_files.h"
#include "data/corpus/index_format.h"
#include "support/captured.h"
#include "util/child.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using tests::read_text;
using tests::write_text;

PrepareOptions for_folder(const fs::path& folder) {
  PrepareOptions options;
  options.input = folder.string();
  options.dataset.language = "en";
  options.workers = 2;
  return options;
}

TEST(Prepare, WritesIndexListAndPage) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 6);
  fs::remove(folder / "wavs/c003.wav");
  const PreparedCorpus corpus = prepare_corpus(for_folder(folder.path()));
  EXPECT_EQ(corpus.index, (folder / "tandem.index").string());
  const ClipIndex index = ClipIndex::open(corpus.index);
  ASSERT_EQ(index.size(), 5);
  EXPECT_EQ(index[3].id, "c004");
  EXPECT_EQ(index[3].text, "say the word number c004");
  EXPECT_EQ(index.full_path(3), (folder / "wavs/c004.wav").string());
  EXPECT_EQ(read_text(corpus.dropped_list),
            "path\treason\tdetail\nwavs/c003.wav\tmissing\tno such file\n");
  EXPECT_TRUE(read_text(corpus.page).starts_with("<!doctype html>"));
  EXPECT_FALSE(fs::exists(corpus.index + ".partial"));
  EXPECT_EQ(corpus.summary.dropped.at("missing"), 1);
}

TEST(Prepare, NamesTheDefaultIndexAfterItsInput) {
  const TestFolder folder;
  EXPECT_EQ(default_index(folder.path().string()), (folder / "tandem.index").string());
  EXPECT_EQ(default_index("/data/metadata_eval.csv"), "/data/metadata_eval.index");
}

TEST(Prepare, DoesNothingTwiceAndSeesWhatChanged) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 5);
  EXPECT_EQ(prepare_corpus(for_folder(folder.path())).reused, 0);
  EXPECT_EQ(prepare_corpus(for_folder(folder.path())).reused, 5);
  tests::write_tone(folder / "wavs/c002.wav", {.seconds = 2});
  const PreparedCorpus corpus = prepare_corpus(for_folder(folder.path()));
  EXPECT_EQ(corpus.reused, 4);
  EXPECT_EQ(ClipIndex::open(corpus.index)[2].frames, 32000);
}

TEST(Prepare, GoesOnAfterItWasKilled) {
  const TestFolder folder;
  constexpr int clips = 60;
  tests::write_ljspeech(folder.path(), clips);
  const std::string partial = (folder / "tandem.index.partial").string();
  // The scan of the child waits in its progress report once work has reached the journal.
  const pid_t child = fork();
  if (child == 0) {
    PrepareOptions options = for_folder(folder.path());
    options.workers = 1;
    options.on_progress = [&](const ScanProgress& now) {
      while (now.done > 0) ::pause();
    };
    try {
      prepare_corpus(options);
    } catch (...) {
    }
    _exit(0);
  }
  const auto journal_bytes_now = [&] {
    std::error_code ignored;
    const auto size = fs::file_size(partial, ignored);
    return ignored ? 0 : size;
  };
  for (int i = 0; i < 3000 && journal_bytes_now() <= journal_header().size(); ++i) ::usleep(10000);
  ::kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_FALSE(fs::exists(folder / "tandem.index"));
  std::vector<JournalRecord> records;
  size_t good = 0;
  ASSERT_EQ(read_journal(read_text(partial), records, good), JournalState::good);
  ASSERT_GT(records.size(), 0u);

  const PreparedCorpus corpus = prepare_corpus(for_folder(folder.path()));
  EXPECT_EQ(corpus.reused, static_cast<int64_t>(records.size())) << "only the rest was scanned";
  EXPECT_EQ(ClipIndex::open(corpus.index).size(), clips);
  EXPECT_FALSE(fs::exists(partial));
}

TEST(Prepare, IsWholeWheneverItIsKilled) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 40);
  for (useconds_t moment = 2000; moment < 60000; moment += 6000) {
    tests::killed_after(moment, [&] { prepare_corpus(for_folder(folder.path())); });
    if (fs::exists(folder / "tandem.index")) {
      EXPECT_EQ(ClipIndex::open((folder / "tandem.index").string()).size(), 40);
    }
  }
  EXPECT_EQ(ClipIndex::open(prepare_corpus(for_folder(folder.path())).index).size(), 40);
}

TEST(Prepare, RebuildsAnOldOrDamagedIndexWithASentence) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 2);
  const std::string index = (folder / "tandem.index").string();
  prepare_corpus(for_folder(folder.path()));
  std::string old = read_text(index);
  old[12] = 0;
  for (const auto& [bytes, why] :
       {std::pair(old, std::string("has version 0; this program reads version 1")),
        std::pair(std::string("gone"), std::string("has 4 bytes: it is cut short"))}) {
    write_text(index, bytes);
    std::vector<std::string> notices;
    PrepareOptions options = for_folder(folder.path());
    options.on_notice = [&](const std::string& sentence) { notices.push_back(sentence); };
    prepare_corpus(options);
    ASSERT_EQ(notices.size(), 2u);
    EXPECT_EQ(notices[1], "the index `" + index + "` " + why + "; it is written anew");
    EXPECT_EQ(ClipIndex::open(index).size(), 2);
  }
}

TEST(Prepare, LeavesAFileAloneThatIsNoIndex) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 2);
  PrepareOptions options = for_folder(folder.path());
  options.out = (folder / "metadata.csv").string();
  const std::string before = read_text(options.out);
  EXPECT_EQ(error_of([&] { prepare_corpus(options); }).what(),
            "`" + options.out + "` is there and is no index; it is left alone");
  EXPECT_EQ(read_text(options.out), before);
}

TEST(Prepare, StopsWhenTooManyAreBroken) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 4);
  write_text(folder / "wavs/c001.wav", "junk");
  const std::string list = (folder / "tandem.index.dropped.tsv").string();
  const Error error = error_of([&] { prepare_corpus(for_folder(folder.path())); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_EQ(error.what(),
            "1 of 4 clips are broken (25 %; at most 20 %); they are listed in `" + list + "`");
  EXPECT_NE(read_text(list).find("wavs/c001.wav\tnot audio"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder / "tandem.index"));
  PrepareOptions more = for_folder(folder.path());
  more.max_bad_share = 0.5;
  EXPECT_EQ(prepare_corpus(more).summary.kept.clips, 3);
}

TEST(Prepare, SaysThatNoClipIsLeft) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 2, 0.2);
  EXPECT_EQ(
      error_of([&] { prepare_corpus(for_folder(folder.path())); }).what(),
      "none of 2 clips is left; `" + (folder / "tandem.index.dropped.tsv").string() + "` says why");
}

TEST(Prepare, RefusesAReadOnlyFolderBeforeItScans) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 2);
  fs::permissions(folder.path(), fs::perms(0555));
  const tests::ChildEnd end = tests::in_child([&] {
    if (geteuid() == 0 && setuid(65534) != 0) return;  // root may write everywhere
    PrepareOptions options = for_folder(folder.path());
    options.on_progress = [](const ScanProgress&) { std::fputs("scanned\n", stdout); };
    try {
      prepare_corpus(options);
    } catch (const Error& error) {
      std::fprintf(stderr, "%d %s", exit_code(error.kind()), error.what());
    }
  });
  fs::permissions(folder.path(), fs::perms(0755));
  EXPECT_EQ(end.err, "4 cannot write `" + (folder / "tandem.index.partial").string() +
                         "`: Permission denied");
  EXPECT_EQ(end.out, "");
}

TEST(Prepare, FailsBeforeItWritesAnything) {
  const TestFolder folder;
  const auto kind_of = [&](PrepareOptions options) {
    return error_of([&] { prepare_corpus(options); }).kind();
  };
  EXPECT_EQ(kind_of(for_folder("/nowhere/at/all")), ErrorKind::io);
  EXPECT_EQ(kind_of(for_folder(folder.path())), ErrorKind::data) << "no audio";
  write_text(folder / "metadata.csv", "a|caf\xE9\n");
  EXPECT_EQ(kind_of(for_folder(folder.path())), ErrorKind::data) << "Windows-1252";
  write_text(folder / "metadata.csv", "a.wav,hello\n");
  EXPECT_EQ(kind_of(for_folder(folder.path())), ErrorKind::data) << "no header";
  PrepareOptions language = for_folder(folder.path());
  language.dataset.language = "klingon";
  EXPECT_EQ(kind_of(language), ErrorKind::data);
  write_text(folder / "metadata.csv", "no bars\n|\n");
  int64_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 1) << "only metadata.csv";
}

TEST(Prepare, ReadsItsOwnIndex) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 4);
  prepare_corpus(for_folder(folder.path()));
  PrepareOptions options = for_folder(folder / "tandem.index");
  options.out = (folder / "again.index").string();
  const PreparedCorpus corpus = prepare_corpus(options);
  EXPECT_EQ(read_text(corpus.index), read_text(folder / "tandem.index"));
}

TEST(Prepare, TrainsAndExtendsAVocabulary) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 8);
  PrepareOptions options = for_folder(folder.path());
  options.train_tokenizer = 50;
  const PreparedCorpus corpus = prepare_corpus(options);
  EXPECT_EQ(corpus.vocabulary, (folder / "vocab.json").string());
  EXPECT_EQ(load_tokenizer(corpus.vocabulary)->vocabulary_size(), 50);
  EXPECT_FALSE(corpus.summary.characters);

  EXPECT_FALSE(prepare_corpus(for_folder(folder.path())).summary.characters)
      << "what lies beside the index is used from then on";

  PrepareOptions extend = for_folder(folder.path());
  extend.tokenizer_file = corpus.vocabulary;
  extend.extend_tokenizer = 2;
  EXPECT_EQ(error_of([&] { prepare_corpus(extend); }).what(),
            "the extended vocabulary would replace `" + corpus.vocabulary + "`, which it extends");
  fs::create_directories(folder / "out");
  extend.out = (folder / "out/x.index").string();
  EXPECT_EQ(load_tokenizer(prepare_corpus(extend).vocabulary)->vocabulary_size(), 52);
}

TEST(Prepare, RefusesVocabulariesThatContradictEachOther) {
  const TestFolder folder;
  tests::write_ljspeech(folder.path(), 1);
  PrepareOptions both = for_folder(folder.path());
  both.train_tokenizer = 100;
  both.tokenizer_file = "v.json";
  EXPECT_EQ(error_of([&] { prepare_corpus(both); }).kind(), ErrorKind::usage);
  PrepareOptions extend = for_folder(folder.path());
  extend.extend_tokenizer = 5;
  EXPECT_EQ(
      error_of([&] { prepare_corpus(extend); }).what(),
      std::string("--extend-tokenizer needs the vocabulary it adds to; expected --tokenizer FILE"));
  PrepareOptions missing = for_folder(folder.path());
  missing.tokenizer_file = (folder / "none.json").string();
  EXPECT_EQ(error_of([&] { prepare_corpus(missing); }).kind(), ErrorKind::io);
}

}  // namespace
}  // namespace tandem
