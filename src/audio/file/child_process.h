// Another program, started with a list of words (never a shell), whose output is read as it comes.
// What it says on standard error is kept, its end. Destroying the object ends the program.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tandem {

class ChildProcess {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `words[0]` is looked for in PATH. The program gets `input`, an open file, as descriptor 3, and
  // nothing to read on standard input. Look at start_error() before anything else.
  ChildProcess(const std::vector<std::string>& words, int input, Time deadline);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  int start_error() const { return start_error_; }  // an errno; ENOENT: no such program
  // Bytes of its standard output, as many as there are by now; 0 at the end. At the deadline the
  // program is ended: then timed_out(), and 0.
  size_t read(std::span<std::byte> into);
  bool timed_out() const { return timed_out_; }
  // After the end of its output: 0 when the program says that all went well.
  int wait();
  // The last line it wrote to standard error, without control characters.
  std::string last_words() const;

 private:
  void end();
  void keep_errors();

  pid_t child_ = -1;
  int output_ = -1, errors_ = -1;
  Time deadline_;
  int start_error_ = 0;
  bool timed_out_ = false;
  std::string said_;
};

}  // namespace tandem
