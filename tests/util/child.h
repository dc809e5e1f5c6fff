// Work done in a child process: what it printed, how it ended; or killed at some moment.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>

namespace tandem::tests {

struct ChildEnd {
  int code = -1;         // exit code, or 128 + the signal that ended it
  std::string out, err;  // with a terminal: what the terminal got is `err`
};

enum class Streams { files, terminal_for_errors, terminal_for_both };

inline std::string read_all(int descriptor) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t got = ::read(descriptor, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;  // a terminal whose last writer left answers EIO
    text.append(buffer, static_cast<size_t>(got));
  }
}

inline int code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A container may come without /dev/pts; tests of what a terminal shows are skipped there.
inline bool has_terminals() {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) return false;
  close(terminal);
  return true;
}
#define SKIP_WITHOUT_TERMINALS() \
  if (!has_terminals()) GTEST_SKIP() << "no pseudo-terminals here: /dev/pts is not mounted"

// An exception that leaves `work` ends the child with code 99 and its text on standard error.
inline ChildEnd in_child(const std::function<void()>& work, Streams streams = Streams::files) {
  const int out = memfd_create("out", 0);
  int err = memfd_create("err", 0), terminal = -1;
  if (streams != Streams::files) {
    terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) {
      ADD_FAILURE() << "no pseudo-terminal";
      return {};
    }
    close(err);
    err = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  }
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(streams == Streams::terminal_for_both ? err : out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    int code = 0;
    try {
      work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "thrown: %s\n", error.what());
      code = 99;
    }
    std::fflush(nullptr);
    _exit(code);
  }
  ChildEnd end;
  if (terminal >= 0) {
    close(err);
    end.err = read_all(terminal);
    close(terminal);
  }
  int status = 0;
  waitpid(child, &status, 0);
  end.code = code_of(status);
  lseek(out, 0, SEEK_SET);
  end.out = read_all(out);
  if (terminal < 0) {
    lseek(err, 0, SEEK_SET);
    end.err = read_all(err);
    close(err);
  }
  close(out);
  return end;
}

// Runs `work` in a child and kills it with SIGKILL after so many microseconds; false when it ended
// before, by itself or by a crash.
inline bool killed_after(useconds_t moment, const std::function<void()>& work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    try {
      work();
    } catch (...) {
    }
    _exit(0);
  }
  usleep(moment);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

}  // namespace tandem::tests
