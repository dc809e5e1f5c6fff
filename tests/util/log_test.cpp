#include "util/log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "util/child.h"
#include "util/scratch.h"
#include "util/text.h"

namespace tandem::tests {
namespace {

void speak_in_every_way() {
  say("✅ done");
  say("⚠️ careful");
  say("❌ broken");
  complain({"❌ first", "   second"});
  log_debug("debug {}", 1);
  log_info("info {}", 2);
  log_warning("warning {}", 3);
  log_error("error {}", 4);
}

ChildEnd speak(const LogOptions& options, Streams streams = Streams::files) {
  return in_child(
      [&] {
        set_up_log(options);
        speak_in_every_way();
      },
      streams);
}

}  // namespace

TEST(Log, SaysToStandardOutputAndComplainsToStandardError) {
  const ChildEnd end = speak({});
  EXPECT_EQ(end.out, "✅ done\ninfo 2\n");
  EXPECT_EQ(
      end.err,
      "⚠️ careful\n❌ broken\n❌ first\n   second\nwarning: warning 3\nerror: error 4\n");
}

TEST(Log, WorksBeforeItIsSetUp) {
  const ChildEnd end = in_child([] { speak_in_every_way(); });
  EXPECT_EQ(end.out, "✅ done\ninfo 2\n");
  EXPECT_TRUE(contains(end.err, "   second\n"));
}

TEST(Log, QuietLeavesWarningsAndErrors) {
  const ChildEnd end = speak({.verbosity = -1});
  EXPECT_EQ(end.out, "");
  EXPECT_EQ(
      end.err,
      "⚠️ careful\n❌ broken\n❌ first\n   second\nwarning: warning 3\nerror: error 4\n");
}

TEST(Log, VerboseAddsDebugLines) {
  EXPECT_EQ(speak({.verbosity = 1}).out, "✅ done\ndebug: debug 1\ninfo 2\n");
}

TEST(Log, ReservedStandardOutputStaysEmptyButForResults) {
  const ChildEnd end = in_child([] {
    set_up_log({.reserve_stdout = true});
    speak_in_every_way();
    print("{\"a\": 1}");
  });
  EXPECT_EQ(end.out, "{\"a\": 1}\n");
  EXPECT_TRUE(contains(end.err, "✅ done\n"));
  EXPECT_TRUE(contains(end.err, "info 2\n"));
}

TEST(Log, ResultsAreNeverFiltered) {
  const ChildEnd end = in_child([] {
    set_up_log({.verbosity = -1, .json = true});
    print("a table");
    print("ends with a line\n");
    print("");
  });
  EXPECT_EQ(end.out, "a table\nends with a line\n\n");
}

TEST(Log, JsonLinesAreOneObjectEach) {
  const ChildEnd end = in_child([] {
    set_up_log({.json = true});
    speak_in_every_way();
    log_info("quote \" line\nbreak and bytes \xff\xfe");
  });
  int lines = 0;
  for (const std::string& line : split(end.out + end.err, '\n')) {
    if (line.empty()) continue;
    const auto object = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(object.is_object()) << line;
    EXPECT_TRUE(object.at("time").is_number());
    EXPECT_TRUE(object.at("level").is_string());
    EXPECT_TRUE(object.at("message").is_string());
    ++lines;
  }
  EXPECT_EQ(lines, 9);
  const auto first = nlohmann::json::parse(split(end.out, '\n')[0]);
  EXPECT_EQ(first["message"], "✅ done");
  EXPECT_EQ(first["level"], "info");
}

TEST(Log, ColourOnlyOnATerminal) {
  SKIP_WITHOUT_TERMINALS();
  EXPECT_FALSE(contains(speak({.verbosity = 1}).err, "\033"));
  const ChildEnd end = speak({.verbosity = 1}, Streams::terminal_for_both);
  EXPECT_TRUE(contains(end.err, "\033[33mwarning:\033[0m warning 3"));
  EXPECT_TRUE(contains(end.err, "\033[31merror:\033[0m error 4"));
  EXPECT_TRUE(contains(end.err, "\033[2mdebug:\033[0m debug 1"));
  EXPECT_TRUE(contains(end.err, "❌ broken\r\n")) << "the contract's lines are never coloured";
}

TEST(Log, NoColourInAFileWhileStandardErrorIsATerminal) {
  SKIP_WITHOUT_TERMINALS();
  const ChildEnd end = speak({.verbosity = 1}, Streams::terminal_for_errors);
  EXPECT_EQ(end.out, "✅ done\ndebug: debug 1\ninfo 2\n");
  EXPECT_TRUE(contains(end.err, "\033[33mwarning:"));
}

TEST(Log, HonoursNoColor) {
  SKIP_WITHOUT_TERMINALS();
  const auto speak_with = [](const char* value) {
    return in_child(
        [&] {
          setenv("NO_COLOR", value, 1);
          set_up_log({});
          speak_in_every_way();
          say(terminal_wants_progress() ? "bar" : "no bar");
        },
        Streams::terminal_for_both);
  };
  EXPECT_FALSE(contains(speak_with("1").err, "\033"));
  EXPECT_TRUE(contains(speak_with("1").err, "\nbar")) << "a bar is no colour";
  EXPECT_TRUE(contains(speak_with("").err, "\033[33mwarning:")) << "empty means unset";
}

TEST(Log, NoBarAndNoColourUnderJsonOrQuiet) {
  SKIP_WITHOUT_TERMINALS();
  const auto wants = [](const LogOptions& options, Streams streams) {
    return in_child(
               [&] {
                 set_up_log(options);
                 print(terminal_wants_progress() ? "bar" : "no bar");
               },
               streams)
        .err;
  };
  EXPECT_EQ(wants({}, Streams::terminal_for_both), "bar\r\n");
  EXPECT_EQ(wants({.json = true}, Streams::terminal_for_both), "no bar\r\n");
  EXPECT_EQ(wants({.verbosity = -1}, Streams::terminal_for_both), "no bar\r\n");
  EXPECT_FALSE(contains(speak({.json = true}, Streams::terminal_for_both).err, "\033"));
}

}  // namespace tandem::tests
