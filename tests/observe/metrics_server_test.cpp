#include "observe/metrics_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "support/captured.h"
#include "util/clock.h"

namespace tandem::tests {
namespace {

// A client that says and hears what it is told to.
class Caller {
 public:
  explicit Caller(int port) {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Caller() { ::close(socket_); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  bool connected() const { return connected_; }
  void say(const std::string& text) const {
    ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  void no_more() const { ::shutdown(socket_, SHUT_WR); }
  void small_window() const {
    const int bytes = 2048;
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }
  // Everything until the other side ends it, or until it was silent for so long.
  std::string hear(int milliseconds = 30000) const {
    std::string text;
    char buffer[4096];
    pollfd wait{socket_, POLLIN, 0};
    while (::poll(&wait, 1, milliseconds) > 0) {
      const ssize_t got = ::recv(socket_, buffer, sizeof buffer, 0);
      if (got <= 0) return text;
      text.append(buffer, static_cast<size_t>(got));
    }
    return text + " (it was not ended)";
  }

 private:
  int socket_ = -1;
  bool connected_ = false;
};

std::string ask(int port, const std::string& request) {
  const Caller caller(port);
  caller.say(request);
  return caller.hear();
}

std::string body_of(const std::string& answer) {
  const size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "no answer: " + answer : answer.substr(end + 4);
}

std::string status_of(const std::string& answer) { return answer.substr(0, answer.find("\r\n")); }

constexpr const char* usual = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

}  // namespace

TEST(MetricsServer, GivesTheTextOfTheMoment) {
  std::atomic<int> asked = 0;
  const MetricsServer server(
      {.text = [&] { return "asked " + std::to_string(++asked) + "\n"; }, .patience = 600});
  const std::string answer = ask(server.port(), usual);
  EXPECT_EQ(answer,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            "Content-Length: 8\r\nCache-Control: no-store\r\nConnection: close\r\n\r\nasked 1\n");
  EXPECT_EQ(body_of(ask(server.port(), "GET /metrics?x=1 HTTP/1.0\n\n")), "asked 2\n");
  EXPECT_EQ(server.address(), "http://127.0.0.1:" + std::to_string(server.port()) + "/metrics");
}

TEST(MetricsServer, AnswersARequestThatComesInPiecesOrEndsEarly) {
  const MetricsServer server({.text = [] { return "all\n"; }, .patience = 600});
  const Caller caller(server.port());
  for (const char* piece : {"GE", "T /metr", "ics HTTP/1.1\r\n", "A: b\r\n", "\r"}) {
    caller.say(piece);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  caller.say("\n");
  caller.no_more();
  EXPECT_EQ(body_of(caller.hear()), "all\n");
}

TEST(MetricsServer, RefusesOtherRequestsWithASentence) {
  const auto text = [] { return std::string("all\n"); };
  const auto answer = [&](const std::string& line) {
    const std::string whole = answer_metrics_request(line + "\r\n\r\n", text);
    return status_of(whole) + " | " + body_of(whole);
  };
  EXPECT_EQ(answer("GET /other HTTP/1.1"),
            "HTTP/1.1 404 Not Found | there is /metrics and nothing else\n");
  EXPECT_EQ(answer("POST /metrics HTTP/1.1"),
            "HTTP/1.1 405 Method Not Allowed | only GET and HEAD are served\n");
  for (const char* line : {"", "GET", "GET /metrics", "GET /metrics SPDY/3", "GET x HTTP/1.1",
                           "GET /metrics HTTP/1.1 more", "\x16\x03\x01"})
    EXPECT_EQ(answer(line),
              "HTTP/1.1 400 Bad Request | a request such as GET /metrics HTTP/1.1 "
              "was expected\n")
        << line;
  EXPECT_EQ(answer("HEAD /metrics HTTP/1.1"), "HTTP/1.1 200 OK | ");
  EXPECT_EQ(answer("GET / HTTP/1.1"), "HTTP/1.1 200 OK | tandem serves its figures at /metrics\n");
}

TEST(MetricsServer, TellsWhyThereIsNoText) {
  const std::string answer = answer_metrics_request(
      usual, []() -> std::string { throw Error(ErrorKind::internal, "it is broken"); });
  EXPECT_EQ(status_of(answer), "HTTP/1.1 500 Internal Server Error");
  EXPECT_EQ(body_of(answer), "it is broken\n");
}

TEST(MetricsServer, EndsARequestThatIsTooLong) {
  const MetricsServer server(
      {.text = [] { return "all\n"; }, .most_request = 1000, .patience = 600});
  const std::string answer =
      ask(server.port(), "GET /metrics HTTP/1.1\r\nA: " + std::string(5000, 'x'));
  EXPECT_EQ(status_of(answer), "HTTP/1.1 431 Request Header Fields Too Large");
  EXPECT_EQ(body_of(ask(server.port(), usual)), "all\n");
}

TEST(MetricsServer, SaysInOneSentenceThatThePortIsTaken) {
  const MetricsServer first({.text = [] { return ""; }});
  const Error error = error_of([&] { MetricsServer({.port = first.port(), .text = {}}); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_EQ(std::string(error.what()),
            "cannot serve metrics at 127.0.0.1:" + std::to_string(first.port()) +
                ": another program uses that port");
  EXPECT_EQ(error.hint(), "give --metrics-port a free port from 1024 up");
}

TEST(MetricsServer, IsServedToThisMachineOnly) {
  const MetricsServer server({.text = [] { return ""; }});
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(server.port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);  // 127.0.0.2, also this machine
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_NE(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(socket);
}

TEST(MetricsServer, ServesOthersWhileSomeSayNothing) {
  const MetricsServer server({.text = [] { return "all\n"; }, .most_clients = 4, .patience = 600});
  std::vector<std::unique_ptr<Caller>> silent;
  for (int i = 0; i < 10; ++i) {  // more than it keeps: the oldest have to go
    silent.push_back(std::make_unique<Caller>(server.port()));
    silent.back()->say("GET /met");
  }
  EXPECT_EQ(body_of(ask(server.port(), usual)), "all\n");
  EXPECT_EQ(silent.front()->hear(), "") << "it was ended";
}

TEST(MetricsServer, GivesUpOnAClientThatTakesTooLong) {
  const MetricsServer server({.text = [] { return "all\n"; }, .patience = 0.05});
  const Caller silent(server.port());
  silent.say("GET /metrics");
  EXPECT_EQ(silent.hear(), "");
}

TEST(MetricsServer, ServesOthersWhileOneDoesNotReadItsAnswer) {
  const std::string large(8 << 20, 'x');  // more than the kernel keeps for it
  const MetricsServer server({.text = [&] { return large; }, .patience = 600});
  const Caller deaf(server.port());
  deaf.small_window();
  deaf.say(usual);
  EXPECT_EQ(body_of(ask(server.port(), usual)).size(), large.size());
}

TEST(MetricsServer, SurvivesClientsThatVanish) {
  const std::string large(4 << 20, 'x');
  const MetricsServer server({.text = [&] { return large; }, .patience = 600});
  for (int i = 0; i < 20; ++i) {
    const Caller caller(server.port());
    caller.say(usual);  // and goes, with the answer under way
  }
  EXPECT_EQ(body_of(ask(server.port(), usual)).size(), large.size());
}

TEST(MetricsServer, StopsAtOnceWhateverItsClientsDo) {
  int port = 0;
  std::unique_ptr<Caller> silent;
  const auto start = Clock::now();
  {
    const MetricsServer server({.text = [] { return "all\n"; }, .patience = 600});
    port = server.port();
    silent = std::make_unique<Caller>(port);
    silent->say("GET /");
    EXPECT_EQ(body_of(ask(port, usual)), "all\n");
  }
  EXPECT_LT(seconds_since(start), 60);
  EXPECT_FALSE(Caller(port).connected());
  EXPECT_EQ(silent->hear(), "");
  const MetricsServer next({.port = port, .text = [] { return "next\n"; }, .patience = 600});
  EXPECT_EQ(body_of(ask(port, usual)), "next\n") << "the next run has the same port";
}

}  // namespace tandem::tests
