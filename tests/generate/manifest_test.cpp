#include "generate/manifest.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/captured.h"
#include "support/temporary_folder.h"
#include "util/atomic_file.h"

namespace tandem {
namespace {

ManifestEntry entry_of(const std::string& name) {
  return {.id = name,
          .text = "Hello “you”\n",
          .normalised = "hello you",
          .language = "en",
          .voice = "Ana",
          .seed = 9007199254740991,
          .seconds = 2.5,
          .work_seconds = 0.5,
          .status = "done",
          .error = "",
          .troubles = {"silence"},
          .other_troubles = {"too long", "repetition"},
          .pieces = 2,
          .attempts = 5,
          .silence_cut = 0.25,
          .file = name + ".wav",
          .recipe = "abc"};
}

TEST(Manifest, AnEntryComesBackAsItWas) {
  const ManifestEntry given = entry_of("a");
  ManifestEntry read;
  ASSERT_TRUE(from_json_line(to_json_line(given), read));
  EXPECT_EQ(to_json_line(read), to_json_line(given));
  EXPECT_EQ(read.text, given.text);
  EXPECT_EQ(read.seed, given.seed);
  EXPECT_DOUBLE_EQ(read.rtf(), 0.2);
  for (const char* line : {"", "{}", "[1]", "{\"id\": 3}", "{\"id\": \"a\", \"te"}) {
    EXPECT_FALSE(from_json_line(line, read)) << line;
  }
}

TEST(Manifest, GoesOnAfterAHalfWrittenLine) {
  TestFolder folder;
  const std::string whole = to_json_line(entry_of("a"));
  folder.write("manifest.jsonl", whole + "\n" + whole.substr(0, 40));
  {
    Manifest manifest(folder.path());
    ASSERT_NE(manifest.find("a.wav"), nullptr);
    manifest.add(entry_of("b"));
  }
  Manifest again(folder.path());
  EXPECT_NE(again.find("a.wav"), nullptr);
  EXPECT_NE(again.find("b.wav"), nullptr);
  EXPECT_EQ(again.find("c.wav"), nullptr);
}

TEST(Manifest, FinishesInTheOrderOfTheTextsWithOneLineEach) {
  TestFolder folder;
  Manifest manifest(folder.path());
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 50; ++k) manifest.add(entry_of(std::to_string(i)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  manifest.finish({"3.wav", "1.wav", "9.wav"});
  EXPECT_EQ(read_file(folder / "manifest.jsonl"),
            to_json_line(entry_of("3")) + "\n" + to_json_line(entry_of("1")) + "\n");
}

TEST(Manifest, RefusesAFolderAnotherRunWritesInto) {
  TestFolder folder;
  Manifest first(folder.path());
  const Error error = error_of([&] { Manifest second(folder.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_NE(std::string(error.what()).find("another run"), std::string::npos);
  EXPECT_EQ(error_of([&] { Manifest none(folder / "missing"); }).kind(), ErrorKind::io);
}

}  // namespace
}  // namespace tandem
