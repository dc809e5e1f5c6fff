// The main program of tests that need LibTorch. Every test runs in a process of its own, because
// devices are configured once a process; but loading LibTorch takes half a second, so it is loaded
// once and a process is forked off for each test. `--one-process` runs all in this one, for
// debuggers. TANDEM_TEST_SECONDS is the limit of one test.
#include <fnmatch.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace tandem {
namespace {

bool matches_any(const std::string& patterns, const std::string& name) {
  for (size_t at = 0; at <= patterns.size();) {
    const size_t end = std::min(patterns.find(':', at), patterns.size());
    if (fnmatch(patterns.substr(at, end - at).c_str(), name.c_str(), 0) == 0) return true;
    at = end + 1;
  }
  return false;
}

// As GoogleTest reads its filter: patterns separated by `:`, behind a `-` those left out.
bool passes(const std::string& filter, const std::string& name) {
  const size_t dash = std::min(filter.find('-'), filter.size());
  const std::string wanted = filter.substr(0, dash);
  return (wanted.empty() || matches_any(wanted, name)) &&
         (dash == filter.size() || !matches_any(filter.substr(dash + 1), name));
}

std::vector<std::string> chosen_tests() {
  std::vector<std::string> names;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const std::string name = std::string(suite.name()) + "." + suite.GetTestInfo(t)->name();
      const bool disabled = name.starts_with("DISABLED_") || name.find(".DISABLED_") != name.npos;
      if (!disabled && passes(GTEST_FLAG_GET(filter), name)) names.push_back(name);
    }
  }
  return names;
}

// Empty when the test passed, else what became of it.
std::string run_forked(const std::string& name, double seconds) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return "could not be started";
  if (child == 0) {
    GTEST_FLAG_SET(filter, name);
    std::exit(RUN_ALL_TESTS());
  }
  const auto start = std::chrono::steady_clock::now();
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return "took more than " + std::to_string(static_cast<int>(seconds)) + " s";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (WIFSIGNALED(status)) return "ended by signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : "failed";
}

int run_each() {
  const char* limit = std::getenv("TANDEM_TEST_SECONDS");
  const std::vector<std::string> names = chosen_tests();
  std::vector<std::string> failures;
  for (const std::string& name : names) {
    const std::string outcome = run_forked(name, limit ? std::atof(limit) : 120);
    if (!outcome.empty()) failures.push_back("[  FAILED  ] " + name + ": " + outcome);
  }
  std::printf("\n%zu tests, %zu failed\n", names.size(), failures.size());
  for (const std::string& failure : failures) std::puts(failure.c_str());
  return failures.empty() && !names.empty() ? 0 : 1;
}

}  // namespace
}  // namespace tandem

int main(int count, char** words) {
  testing::InitGoogleTest(&count, words);
  const bool one_process = count > 1 && std::string(words[1]) == "--one-process";
  if (one_process || GTEST_FLAG_GET(list_tests)) return RUN_ALL_TESTS();
  return tandem::run_each();
}
