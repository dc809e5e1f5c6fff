// `tandem monitor` and `--metrics-port`, as a user runs them.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/byte_training.h"
#include "support/program.h"

namespace tandem {
namespace {

using Words = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Words training(const std::filesystem::path& run, const std::string& steps, const Words& more = {}) {
  Words words = byte_training(
      run, steps,
      {"--simulate-gpus", "2", "--data-gpu", "0", "--model-gpu", "1", "observe.log_step=1"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

bool comes(const std::function<bool()>& condition) {
  for (int i = 0; i < 600 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return condition();
}

// A socket on a port of the loopback address, listening or connected.
class Loopback {
 public:
  Loopback() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {}
  ~Loopback() { ::close(socket_); }
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;
  // Any free one, held until this goes.
  int take_port() {
    sockaddr_in address = at(0);
    socklen_t size = sizeof address;
    ::bind(socket_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(socket_, 1);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
  }
  // What the server there answers; empty when there is none.
  std::string ask(int port) {
    const sockaddr_in address = at(port);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return "";
    const std::string request = "GET /metrics HTTP/1.1\r\n\r\n";
    ::send(socket_, request.data(), request.size(), MSG_NOSIGNAL);
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::recv(socket_, buffer, sizeof buffer, 0)) > 0;)
      text.append(buffer, static_cast<size_t>(got));
    return text;
  }

 private:
  static sockaddr_in at(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    return address;
  }
  int socket_;
};

int free_port() { return Loopback().take_port(); }
std::string metrics_at(int port) { return Loopback().ask(port); }

// The program on a terminal of its own, 100 columns by 30 rows.
class ProgramOnTerminal {
 public:
  explicit ProgramOnTerminal(const Words& words) {
    terminal_ = posix_openpt(O_RDWR | O_NOCTTY);
    grantpt(terminal_);
    unlockpt(terminal_);
    const winsize size{.ws_row = 30, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
    const std::string name = ptsname(terminal_);
    child_ = fork();
    if (child_ != 0) return;
    setsid();
    const int inside = open(name.c_str(), O_RDWR);
    ioctl(inside, TIOCSWINSZ, &size);
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      dup2(inside, descriptor);
    setenv("TERM", "xterm", 1);
    std::vector<char*> arguments{const_cast<char*>(TANDEM_PROGRAM)};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execv(TANDEM_PROGRAM, arguments.data());
    _exit(127);
  }
  ~ProgramOnTerminal() { close(terminal_); }
  void type(const std::string& keys) const {
    [[maybe_unused]] const ssize_t written = write(terminal_, keys.data(), keys.size());
  }
  // Reads until that was shown, for half a minute at most.
  bool shows(const std::string& part) {
    for (int i = 0; i < 300 && !contains(shown, part); ++i) read_for(100);
    return contains(shown, part);
  }
  int wait() {
    int status = 0;
    while (waitpid(child_, &status, WNOHANG) == 0) read_for(20);
    read_for(20);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string shown;

 private:
  void read_for(int milliseconds) {
    char buffer[4096];
    pollfd wait{terminal_, POLLIN, 0};
    while (poll(&wait, 1, milliseconds) > 0) {
      const ssize_t got = read(terminal_, buffer, sizeof buffer);
      if (got <= 0) return;
      shown.append(buffer, static_cast<size_t>(got));
      milliseconds = 0;
    }
  }
  int terminal_ = -1;
  pid_t child_ = -1;
};

}  // namespace

TEST(Monitor, WithoutAGpuShowsTheHost) {
  const ProgramRun run = run_program({"monitor", "--once", "--json"},
                                     {{"TANDEM_NVML_LIBRARY", "libno-such-library.so"}});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_TRUE(json["gpus"].empty());
  EXPECT_TRUE(json["run"].is_null());
  EXPECT_GT(json["host"]["cores"], 0);
  EXPECT_GE(json["host"]["cpu_utilisation"], 0);
  EXPECT_GT(json["host"]["memory_total"], json["host"]["memory_used"]);
}

TEST(Monitor, ShowsEveryGpuTheDriverKnows) {
  const Program::Variables two = {{"TANDEM_NVML_LIBRARY", TANDEM_FAKE_NVML},
                                  {"TANDEM_FAKE_GPUS", "2"}};
  const ProgramRun json = run_program({"monitor", "--json"}, two);
  ASSERT_EQ(json.code, 0) << json.err;
  const auto gpus = nlohmann::json::parse(json.out)["gpus"];
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[1]["hardware"], "NVIDIA Pretend 1");
  EXPECT_DOUBLE_EQ(gpus[1]["power_watts"], 123.4);
  const ProgramRun text = run_program({"monitor", "--once"}, two);
  EXPECT_TRUE(contains(text.out, "GPU 1     11%")) << text.out;
  EXPECT_TRUE(contains(text.out, "host")) << text.out;
}

TEST(Monitor, ShowsSimulatedGpus) {
  const ProgramRun run = run_program({"monitor", "--simulate-gpus", "3", "--once", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto gpus = nlohmann::json::parse(run.out)["gpus"];
  ASSERT_EQ(gpus.size(), 3U);
  EXPECT_EQ(gpus[2]["name"], "/GPU:2");
  EXPECT_EQ(gpus[2]["hardware"], "simulated GPU");
}

TEST(Monitor, ShowsARunOnSimulatedGpusAndEndsWithIt) {
  const TestFolder folder;
  const auto run = folder / "run";
  ASSERT_EQ(run_program(training(run, "40")).code, 0);
  const ProgramRun once = run_program({"monitor", run.string(), "--once", "--json"});
  ASSERT_EQ(once.code, 0) << once.err;
  const auto json = nlohmann::json::parse(once.out)["run"];
  EXPECT_EQ(json["state"], "finished");
  EXPECT_EQ(json["step"], 40);
  EXPECT_EQ(json["total_steps"], 40);
  EXPECT_GT(json["loss"], 0);
  EXPECT_GT(json["tokens_per_second"], 0);
  ASSERT_EQ(json["devices"].size(), 2U);
  EXPECT_EQ(json["devices"][1]["hardware"], "simulated GPU");
  const ProgramRun lines = run_program({"monitor", folder.path().string()});
  EXPECT_EQ(lines.code, 0) << lines.err;
  EXPECT_TRUE(contains(lines.out, "  step 40/40  loss ")) << lines.out;
  EXPECT_TRUE(contains(lines.out, "\nrun finished\n")) << lines.out;
}

TEST(Monitor, FollowsARunInPlainLinesUntilItIsStopped) {
  const TestFolder folder;
  const auto run = folder / "run";
  Program trained(training(run, "1000000"));
  ASSERT_TRUE(comes([&] { return contains(trained.read("out"), "step 3/"); }));
  Program monitor({"monitor", run.string(), "--interval", "0.1"});
  ASSERT_TRUE(comes([&] { return contains(monitor.read("out"), "/1000000  loss "); }));
  trained.signal(SIGINT);
  EXPECT_EQ(trained.wait().code, 130);
  const ProgramRun end = monitor.wait();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_TRUE(contains(end.out, "\nrun stopped: interrupted after step ")) << end.out;
  EXPECT_FALSE(contains(end.out, "\033")) << "plain lines only";
}

TEST(Monitor, OnATerminalRedrawsInPlaceAndGivesItBack) {
  ProgramOnTerminal monitor({"monitor", "--simulate-gpus", "1", "--interval", "0.1"});
  ASSERT_TRUE(monitor.shows("/GPU:0"));
  EXPECT_TRUE(monitor.shows("\033[?1049h\033[?25l"));
  monitor.shown.clear();
  ASSERT_TRUE(monitor.shows("\033[?2026h\033[H")) << "it goes on";
  monitor.type("xq");
  EXPECT_EQ(monitor.wait(), 0);
  const size_t left = monitor.shown.find("\033[?25h\033[?1049l");
  ASSERT_NE(left, std::string::npos);
  EXPECT_TRUE(contains(monitor.shown.substr(left), "host")) << "the last picture stays";
  EXPECT_FALSE(contains(monitor.shown, "\033[2J")) << "clearing is what flickers";
}

TEST(Monitor, OnATerminalEndsOnControlC) {
  ProgramOnTerminal monitor({"monitor", "--simulate-gpus", "1", "--interval", "3600"});
  ASSERT_TRUE(monitor.shows("/GPU:0"));
  monitor.type("\x03");
  EXPECT_EQ(monitor.wait(), 0);
  EXPECT_TRUE(contains(monitor.shown, "\033[?25h\033[?1049l"));
}

TEST(Monitor, EndsOnASignal) {
  for (const int number : {SIGINT, SIGTERM}) {
    Program monitor({"monitor", "--simulate-gpus", "1", "--interval", "3600"});
    ASSERT_TRUE(comes([&] { return contains(monitor.read("out"), "/GPU:0"); }));
    monitor.signal(number);
    EXPECT_EQ(monitor.wait().code, 0);
  }
}

TEST(Monitor, RefusesWhatItCannotWatch) {
  const auto refusal = [](const Words& words, int code) {
    const ProgramRun run = run_program(words);
    EXPECT_EQ(run.code, code);
    EXPECT_EQ(run.out, "");
    return run.err;
  };
  const TestFolder folder;
  EXPECT_TRUE(contains(refusal({"monitor", (folder / "none").string()}, 1), "there is no folder"));
  EXPECT_TRUE(contains(refusal({"monitor", folder.path().string()}, 1), "holds no run"));
  for (const char* interval : {"0", "x", "nan", "-1", "4000"})
    EXPECT_EQ(refusal({"monitor", "--interval", interval}, 2),
              "error: --interval is `" + std::string(interval) +
                  "`; expected seconds from 0.1 to 3600\n");
  EXPECT_TRUE(contains(refusal({"monitor", "a", "b"}, 2), "`b` is one run too many"));
}

TEST(MetricsPort, OfATrainingServesItsFiguresWhileItRuns) {
  const TestFolder folder;
  const int port = free_port();
  Program trained(training(folder / "run", "1000000", {"--metrics-port", std::to_string(port)}));
  ASSERT_TRUE(comes([&] { return contains(metrics_at(port), "tandem_queue_ready_ratio"); }))
      << trained.read("err");
  const std::string text = metrics_at(port);
  EXPECT_TRUE(contains(text, "\ntandem_train_planned_steps 1000000\n")) << text;
  for (const char* part :
       {"HTTP/1.1 200 OK", "tandem_build_info{version=\"", "tandem_train_loss ",
        "tandem_train_tokens_per_second ", "tandem_device_memory_bytes{device=\"/GPU:1\"} ",
        "tandem_queue_items_total{queue=\"moved\"} ", "tandem_train_skipped_steps_total 0"})
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
  EXPECT_TRUE(contains(trained.read("out"),
                       "metrics: http://127.0.0.1:" + std::to_string(port) + "/metrics\n"));
  trained.signal(SIGINT);
  EXPECT_EQ(trained.wait().code, 130);
  EXPECT_EQ(metrics_at(port), "");
}

TEST(MetricsPort, ThatIsTakenIsOneSentenceBeforeAnythingElse) {
  const TestFolder folder;
  Loopback other;
  const std::string port = std::to_string(other.take_port());
  const std::string sentence = "error: cannot serve metrics at 127.0.0.1:" + port +
                               ": another program uses that port (hint: give --metrics-port a free "
                               "port from 1024 up)\n";
  const ProgramRun trained = run_program(training(folder / "run", "5", {"--metrics-port", port}));
  EXPECT_EQ(trained.code, 1);
  EXPECT_EQ(trained.err, sentence);
  EXPECT_FALSE(std::filesystem::exists(folder / "run" / "metrics.jsonl"));
  const ProgramRun generated =
      run_program({"generate", "--simulate-gpus", "1", "--model",
                   TANDEM_SOURCE_DIR "/tests/models/fixtures/musicgen/tiny", "--prompt", "calm",
                   "--seconds", "0.2", "-o", (folder / "a.wav").string(), "--metrics-port", port});
  EXPECT_EQ(generated.code, 1);
  EXPECT_EQ(generated.err, sentence);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.wav"));
}

TEST(MetricsPort, OfAGenerationCountsItsClips) {
  const TestFolder folder;
  std::string captions = "id,caption\n";
  for (int i = 0; i < 200; ++i) captions += "c" + std::to_string(i) + ",calm piano\n";
  const int port = free_port();
  Program generated({"generate", "--simulate-gpus", "2", "--model",
                     TANDEM_SOURCE_DIR "/tests/models/fixtures/musicgen/tiny", "--captions",
                     folder.write("captions.csv", captions), "data.text_column=caption",
                     "--seconds", "1", "-b", "4", "-o", (folder / "out").string(), "--metrics-port",
                     std::to_string(port)});
  ASSERT_TRUE(comes([&] {
    const std::string text = metrics_at(port);
    return contains(text, "tandem_generate_clips_done_total ") &&
           !contains(text, "tandem_generate_clips_done_total 0\n");
  })) << generated.read("err");
  const std::string text = metrics_at(port);
  for (const char* part :
       {"\ntandem_generate_planned_clips 200\n", "\ntandem_generate_clips_failed_total 0\n",
        "command=\"generate\"", "tandem_generate_device_clips_total{device=\"/GPU:1\"} "})
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
  const ProgramRun monitor =
      run_program({"monitor", (folder / "out").string(), "--once", "--json"});
  const auto run = nlohmann::json::parse(monitor.out)["run"];
  EXPECT_EQ(run["work"], "generate");
  EXPECT_EQ(run["state"], "running");
  EXPECT_GT(run["clips_done"], 0);
  EXPECT_EQ(run["planned_clips"], 200);
  EXPECT_GT(run["seconds_left"], 0);
  generated.signal(SIGINT);
  EXPECT_EQ(generated.wait().code, 130);
}

}  // namespace tandem
