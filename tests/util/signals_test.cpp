#include "util/signals.h"

#include <gtest/gtest.h>

#include <csignal>

#include "util/child.h"

namespace tandem::tests {
namespace {

// The request after these signals, as the child's exit code; or what the signals made of the child.
int after(std::initializer_list<int> signals) {
  return in_child([&] {
           catch_stop_signals();
           for (const int signal : signals) raise(signal);
           _exit(10 + static_cast<int>(stop_requested()));
         })
      .code;
}

constexpr int nothing = 10, interrupted = 11, terminated = 12;

}  // namespace

TEST(Signals, NothingIsRequestedAtFirst) { EXPECT_EQ(after({}), nothing); }

TEST(Signals, TheFirstCtrlCAsks) { EXPECT_EQ(after({SIGINT}), interrupted); }

TEST(Signals, TheSecondCtrlCLeavesAtOnce) { EXPECT_EQ(after({SIGINT, SIGINT}), 130); }

TEST(Signals, TerminationAsks) {
  EXPECT_EQ(after({SIGTERM}), terminated);
  EXPECT_EQ(after({SIGUSR1}), terminated);
}

TEST(Signals, TerminationMayComeTwice) {
  EXPECT_EQ(after({SIGUSR1, SIGTERM}), terminated);
  EXPECT_EQ(after({SIGTERM, SIGTERM}), terminated);
}

TEST(Signals, AClosedTerminalAsks) { EXPECT_EQ(after({SIGHUP}), terminated); }

// A terminal tells what a run's output is piped to as well.
TEST(Signals, ABrokenPipeIsNoEndOfWhatIsAskedToStop) {
  EXPECT_EQ(after({SIGHUP, SIGPIPE}), terminated);
  EXPECT_EQ(after({SIGINT, SIGPIPE}), interrupted);
}

TEST(Signals, ARequestCanBeMadeFromInside) {
  request_stop(StopRequest::terminated);
  EXPECT_EQ(stop_requested(), StopRequest::terminated);
  request_stop(StopRequest::none);
  EXPECT_EQ(stop_requested(), StopRequest::none);
}

}  // namespace tandem::tests
