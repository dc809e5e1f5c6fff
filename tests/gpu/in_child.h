// Each test on a real GPU runs in a child process of its own, because devices are configured once a
// process.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "tandem/devices.h"

namespace tandem {

// True when `work` ran in a fresh process without a failed expectation.
inline bool in_child(const std::function<void()>& work) {
  if (std::getenv("TANDEM_GPU_TESTS_IN_PROCESS")) {  // for a debugger; one test at a time
    work();
    return true;
  }
  const pid_t child = fork();
  if (child == 0) {
    try {
      work();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    std::fflush(stdout);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) ADD_FAILURE() << "killed by signal " << WTERMSIG(status);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
#define IN_CHILD(...) EXPECT_TRUE(in_child([] __VA_ARGS__)) << "in a child process"

inline DeviceRequest split(int parts) {
  DeviceRequest request;
  request.split_gpu = parts;
  return request;
}

}  // namespace tandem
