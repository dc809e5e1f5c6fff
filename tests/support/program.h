// Runs the program as a user does and keeps what it prints.
//
// Loading LibTorch takes half a second, and this process has it loaded. So a fork of it enters the
// program (cli/entry.h) where that makes no difference; otherwise the built program is started.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/entry.h"
#include "device/registry.h"
#include "support/temporary_folder.h"

namespace tandem {

struct ProgramRun {
  int code = -1;
  std::string out, err;
};

// A program that was started and not yet waited for. Works in `folder`.
class Program {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;

  Program(const std::vector<std::string>& words, const Variables& variables = {}) {
    const bool enters = can_enter(words, variables);
    std::fflush(nullptr);
    child_ = fork();
    if (child_ != 0) return;
    redirect(STDOUT_FILENO, "out");
    redirect(STDERR_FILENO, "err");
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    if (enters) leave_program(enter_program(words));
    std::vector<char*> arguments{const_cast<char*>(TANDEM_PROGRAM)};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execv(TANDEM_PROGRAM, arguments.data());
    _exit(127);
  }

  void signal(int number) const { kill(child_, number); }

  ProgramRun wait() {
    int status = 0;
    waitpid(child_, &status, 0);
    ProgramRun run;
    run.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    run.out = read("out");
    run.err = read("err");
    return run;
  }

  std::string read(const std::string& stream) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / stream).rdbuf();
    return text.str();
  }

 private:
  // Not where threads would be missing after a fork, devices are configured, libraries have read
  // their variables already, or the program starts itself once more.
  static bool can_enter(const std::vector<std::string>& words, const Variables& variables) {
    for (const auto& [name, value] : variables)
      if (!name.starts_with("TANDEM_")) return false;
    const auto threads = std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                                       std::filesystem::directory_iterator());
    const bool starts_itself = !words.empty() && (words[0] == "tune" || words[0] == "diagnose");
    return threads == 1 && !DeviceRegistry::get().configured() && !starts_itself;
  }
  void redirect(int descriptor, const char* name) const {
    const int file = open((folder_ / name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(file, descriptor);
    close(file);
  }
  TestFolder folder_;
  pid_t child_ = -1;
};

inline ProgramRun run_program(const std::vector<std::string>& words,
                              const Program::Variables& variables = {}) {
  return Program(words, variables).wait();
}

}  // namespace tandem
