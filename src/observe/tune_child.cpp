#include "observe/tune_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tandem/error.h"
#include "util/clock.h"
#include "util/signals.h"
#include "util/host_memory.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr int look_every_ms = 20;
constexpr size_t most_kept = 1 << 20;  // bytes of each stream

struct Ends {
  int read = -1, write = -1;
  Ends() {
    int both[2];
    if (pipe2(both, O_CLOEXEC | O_NONBLOCK) != 0)
      throw Error(ErrorKind::internal, std::string("no pipe: ") + std::strerror(errno));
    read = both[0];
    write = both[1];
  }
  ~Ends() {
    close(read);
    close_write();
  }
  Ends(const Ends&) = delete;
  void close_write() {
    if (write >= 0) close(write);
    write = -1;
  }
};

void write_blocking(int end, int descriptor) {
  fcntl(end, F_SETFL, 0);
  dup2(end, descriptor);  // without close-on-exec
}

// Between fork and exec: system calls only.
[[noreturn]] void become(char* const* words, const Ends& output, const Ends& errors, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before the line above
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGPIPE}) ::signal(number, SIG_DFL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  // Should the machine run out of memory all the same, this one goes first.
  const int score = open("/proc/self/oom_score_adj", O_WRONLY);
  if (score >= 0) {
    [[maybe_unused]] const ssize_t written = write(score, "1000", 4);
    close(score);
  }
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  write_blocking(output.write, STDOUT_FILENO);
  write_blocking(errors.write, STDERR_FILENO);
  execv(words[0], words);
  _exit(127);
}

void drain(int end, std::string& into) {
  char buffer[16384];
  for (ssize_t got; (got = read(end, buffer, sizeof buffer)) > 0;) {
    into.append(buffer, static_cast<size_t>(got));
    if (into.size() > most_kept) into.erase(0, into.size() - most_kept);
  }
}

uint64_t resident_of(const std::filesystem::path& process) {
  uint64_t all = 0, resident = 0;
  std::ifstream(process / "statm") >> all >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Resident bytes of every process of the group; a walk over all processes of the machine.
uint64_t resident_of_group(pid_t group) {
  uint64_t bytes = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const auto id = parse_int(entry.path().filename().string());
    if (id && getpgid(static_cast<pid_t>(*id)) == group) bytes += resident_of(entry.path());
  }
  return bytes;
}

}  // namespace

ChildEnd run_limited_child(const std::vector<std::string>& words, const ChildLimits& limits) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  Ends output, errors;
  const auto start = Clock::now();
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0)
    throw Error(ErrorKind::internal, std::string("no process: ") + std::strerror(errno));
  if (child == 0) become(arguments.data(), output, errors, parent);
  setpgid(child, child);  // whichever of the two comes first
  output.close_write();
  errors.close_write();

  ChildEnd end;
  int status = 0;
  uint64_t looks = 0;
  for (bool running = true; running;) {
    pollfd ends[2] = {{output.read, POLLIN, 0}, {errors.read, POLLIN, 0}};
    poll(ends, 2, look_every_ms);
    drain(output.read, end.output);
    drain(errors.read, end.errors);
    if (waitpid(child, &status, WNOHANG) == child) break;
    if ((ends[0].revents | ends[1].revents) & POLLHUP) usleep(look_every_ms * 1000);
    // The program itself each time; what it may have started, which costs more, now and then.
    const uint64_t held = looks++ % 16 == 0 ? resident_of_group(child)
                                            : resident_of("/proc/" + std::to_string(child));
    end.host_peak = std::max(end.host_peak, held);
    running = false;
    if (stop_requested() != StopRequest::none)
      end.how = ChildEnd::How::stopped;
    else if (limits.host_bytes > 0 && end.host_peak > limits.host_bytes)
      end.how = ChildEnd::How::over_memory;
    else if (seconds_since(start) > limits.seconds)
      end.how = ChildEnd::How::over_time;
    else
      running = true;
    if (running) continue;
    kill(-child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  kill(-child, SIGKILL);  // what it may have started and left
  drain(output.read, end.output);
  drain(errors.read, end.errors);
  end.seconds = seconds_since(start);
  if (end.how != ChildEnd::How::exited) return end;
  if (WIFSIGNALED(status)) {
    end.how = ChildEnd::How::signalled;
    end.signal = WTERMSIG(status);
  } else {
    end.code = WEXITSTATUS(status);
  }
  return end;
}

uint64_t host_memory_to_spare() { return available_host_memory() / 20 * 17; }

}  // namespace tandem
