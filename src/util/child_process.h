// Another program, started with a list of words (never a shell), whose output is read as it comes.
// What it says on standard error is kept, its end, unless it runs in the foreground. Destroying the
// object ends the program.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tandem {

struct ChildOptions {
  int input = -1;  // an open file, which the program gets as descriptor 3; -1: none
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  // Its complaints go where ours go, and Ctrl-C reaches it as it reaches us. Otherwise it has a
  // process group of its own, and ending it ends what it started.
  bool foreground = false;
};

class ChildProcess {
 public:
  // `words[0]` is looked for in PATH. The program has nothing to read on standard input. Look at
  // start_error() before anything else.
  explicit ChildProcess(const std::vector<std::string>& words, const ChildOptions& options = {});
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  int start_error() const { return start_error_; }  // an errno; ENOENT: no such program
  // Bytes of its standard output, as many as there are by now; 0 at the end. At the deadline the
  // program is ended: then timed_out(), and 0.
  size_t read(std::span<std::byte> into);
  std::string read_all();
  bool timed_out() const { return timed_out_; }
  // After the end of its output: its exit code, or 128 + the signal that ended it.
  int wait();
  // The last line it wrote to standard error, without control characters.
  std::string last_words() const;

 private:
  void end();
  void keep_errors();

  pid_t child_ = -1;
  int output_ = -1, errors_ = -1;
  ChildOptions options_;
  int start_error_ = 0;
  bool timed_out_ = false;
  std::string said_;
};

}  // namespace tandem
