#include "util/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace tandem {
namespace {

constexpr size_t most_words_kept = 4096;
// Above those the child gets, so that giving it one never overwrites another.
constexpr int first_free_descriptor = 10;

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void raise(int from) { number_ = ::fcntl(from, F_DUPFD_CLOEXEC, first_free_descriptor); }
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

struct Pipe {
  Descriptor read_end, write_end;
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    const Descriptor low_read(ends[0]), low_write(ends[1]);
    read_end.raise(ends[0]);
    write_end.raise(ends[1]);
    return read_end.number() >= 0 && write_end.number() >= 0;
  }
};

struct SpawnPlan {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  explicit SpawnPlan(bool own_group) {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    // Signals as a program expects them, whatever we block or ignore.
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    const int group = own_group ? POSIX_SPAWN_SETPGROUP : 0;
    posix_spawnattr_setflags(
        &attributes, static_cast<short>(group | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& words, const ChildOptions& options)
    : options_(options) {
  Pipe output, errors;
  Descriptor file;
  const bool given = options.input >= 0;
  if (given) file.raise(options.input);
  if ((given && file.number() < 0) || !output.open() || (!options.foreground && !errors.open())) {
    start_error_ = errno;
    return;
  }
  SpawnPlan plan(!options.foreground);
  posix_spawn_file_actions_addopen(&plan.actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&plan.actions, output.write_end.number(), 1);
  if (!options.foreground)
    posix_spawn_file_actions_adddup2(&plan.actions, errors.write_end.number(), 2);
  if (given) posix_spawn_file_actions_adddup2(&plan.actions, file.number(), 3);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  start_error_ = posix_spawnp(&child_, arguments[0], &plan.actions, &plan.attributes,
                              arguments.data(), environ);
  if (start_error_ != 0) {
    child_ = -1;
    return;
  }
  output_ = output.read_end.release();
  errors_ = errors.read_end.release();
}

ChildProcess::~ChildProcess() {
  end();
  if (output_ >= 0) ::close(output_);
  if (errors_ >= 0) ::close(errors_);
}

void ChildProcess::end() {
  if (child_ <= 0) return;
  ::kill(options_.foreground ? child_ : -child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
}

void ChildProcess::keep_errors() {
  char buffer[1024];
  const ssize_t got = ::read(errors_, buffer, sizeof buffer);
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) {
    ::close(errors_);
    errors_ = -1;
    return;
  }
  said_.append(buffer, static_cast<size_t>(got));
  if (said_.size() > most_words_kept) said_.erase(0, said_.size() - most_words_kept);
}

size_t ChildProcess::read(std::span<std::byte> into) {
  while (output_ >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        options_.deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      timed_out_ = true;
      end();
      return 0;
    }
    pollfd ends[2] = {{output_, POLLIN, 0}, {errors_, POLLIN, 0}};  // poll passes over -1
    const int milliseconds = static_cast<int>(std::min<int64_t>(left.count(), 60'000));
    if (::poll(ends, 2, milliseconds) <= 0) continue;
    if (ends[1].revents != 0) keep_errors();
    if (ends[0].revents == 0) continue;
    const ssize_t got = ::read(output_, into.data(), into.size());
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) return static_cast<size_t>(got);
    ::close(output_);
    output_ = -1;
  }
  return 0;
}

std::string ChildProcess::read_all() {
  std::string text;
  std::byte block[4096];
  while (const size_t got = read(block)) text.append(reinterpret_cast<const char*>(block), got);
  return text;
}

int ChildProcess::wait() {
  int status = 0;
  while (child_ > 0) {
    pollfd end_of_errors = {errors_, POLLIN, 0};
    ::poll(&end_of_errors, 1, 2);
    if (end_of_errors.revents != 0) keep_errors();
    const pid_t ended = ::waitpid(child_, &status, WNOHANG);
    if (ended < 0 && errno == EINTR) continue;
    if (ended != 0) {
      child_ = -1;
      pollfd rest = {errors_, POLLIN, 0};
      while (errors_ >= 0 && ::poll(&rest, 1, 0) > 0) {
        keep_errors();
        rest.fd = errors_;
      }
      if (ended < 0) return 128;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    if (std::chrono::steady_clock::now() >= options_.deadline) {
      timed_out_ = true;
      end();
    }
  }
  return 128;
}

std::string ChildProcess::last_words() const {
  const size_t last = said_.find_last_not_of("\r\n \t");
  if (last == std::string::npos) return "";
  const size_t start = said_.find_last_of("\r\n", last);
  std::string line = said_.substr(start == std::string::npos ? 0 : start + 1);
  line.resize(line.find_last_not_of("\r\n \t") + 1);
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return line;
}

}  // namespace tandem
