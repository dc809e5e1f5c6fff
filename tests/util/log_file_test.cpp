#include <gtest/gtest.h>

#include <regex>
#include <thread>

#include "util/child.h"
#include "util/log.h"
#include "util/scratch.h"
#include "util/text.h"

namespace tandem::tests {
namespace {

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines = split(contents(path), '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace

TEST(LogFile, HasEveryLineWithItsTimeAndLevel) {
  const TestFolder folder;
  const auto path = folder / "run.log";
  in_child([&] {
    set_up_log({.verbosity = -1, .file = path.string()});
    say("✅ done");
    complain({"❌ broken", "   because"});
    log_debug("a");
    log_info("b");
    log_warning("c");
    log_error("d");
  });
  const std::vector<std::string> lines = lines_of(path);
  ASSERT_EQ(lines.size(), 7u);
  const char* expected[] = {"info    ✅ done", "error   ❌ broken", "error      because", "debug   a",
                            "info    b",      "warning c",        "error   d"};
  const std::regex stamp(R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} .*)");
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_TRUE(std::regex_match(lines[i], stamp)) << lines[i];
    EXPECT_EQ(lines[i].substr(24), expected[i]);
  }
}

TEST(LogFile, IsContinuedByTheNextRun) {
  const TestFolder folder;
  const auto path = folder / "run.log";
  for (const char* line : {"first", "second"}) {
    in_child([&] {
      set_up_log({.file = path.string()});
      log_info("{}", line);
    });
  }
  ASSERT_EQ(lines_of(path).size(), 2u);
  EXPECT_TRUE(contains(lines_of(path)[0], "first"));
}

TEST(LogFile, ThatCannotBeWrittenIsAnIoError) {
  const TestFolder folder;
  put(folder / "plain", "");
  const std::string path = (folder / "plain" / "run.log").string();
  const Thrown thrown = thrown_by([&] { set_up_log({.file = path}); });
  EXPECT_EQ(thrown.kind, "io");
  EXPECT_TRUE(contains(thrown.sentence, "cannot write the log file `" + path + "`"))
      << thrown.sentence;
  EXPECT_EQ(thrown.hint, "give --log-file a path in a folder you may write to");
}

TEST(LogFile, LinesOfManyThreadsStayWhole) {
  const TestFolder folder;
  const auto path = folder / "run.log";
  const ChildEnd end = in_child([&] {
    set_up_log({.file = path.string()});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < 200; ++i) log_info("thread {} {}", t, std::string(50, 'x'));
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  const std::regex whole(R"(thread \d x{50})");
  EXPECT_EQ(lines_of(path).size(), 800u);
  const std::vector<std::string> shown = split(end.out, '\n');
  EXPECT_EQ(shown.size(), 801u);
  for (size_t i = 0; i < 800; ++i) EXPECT_TRUE(std::regex_match(shown[i], whole)) << shown[i];
}

}  // namespace tandem::tests
