#include "observe/metrics_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <optional>
#include <vector>

#include "tandem/error.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

using Seconds = std::chrono::duration<double>;

// One exchange: the request's head, the answer, and then what the client still sends, unread data
// being a reason for the kernel to take back an answer that is under way.
struct Client {
  int socket = -1;
  Clock::time_point until;
  enum { asking, answered, leaving } phase = asking;
  std::string heard = {}, answer = {};
  size_t sent = 0;
};

bool head_is_whole(const std::string& heard) {
  return heard.find("\r\n\r\n") != std::string::npos || heard.find("\n\n") != std::string::npos;
}

std::string http_answer(const std::string& status, const std::string& body, bool with_body = true,
                        const std::string& more = "") {
  return fmt::format(
             "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
             "Content-Length: {}\r\nCache-Control: no-store\r\nConnection: close\r\n{}\r\n",
             status, body.size(), more) +
         (with_body ? body : "");
}

class ServerLoop {
 public:
  ServerLoop(const MetricsServerOptions& options, int listener, int wake)
      : options_(options), listener_(listener), wake_(wake) {}
  ~ServerLoop() {
    for (const Client& client : clients_) ::close(client.socket);
  }

  void run() {
    while (true) {
      std::vector<pollfd> waits = {{wake_, POLLIN, 0}, {accepting() ? listener_ : -1, POLLIN, 0}};
      for (const Client& client : clients_)
        waits.push_back({client.socket,
                         static_cast<short>(client.phase == Client::answered ? POLLOUT : POLLIN),
                         0});
      ::poll(waits.data(), waits.size(), milliseconds_to_wait());
      if (waits[0].revents != 0) return;
      size_t place = 2;
      for (auto client = clients_.begin(); client != clients_.end();) {
        const bool ready = waits[place++].revents != 0;
        const bool stays = (!ready || serve(*client)) && Clock::now() < client->until;
        if (!stays) ::close(client->socket);
        client = stays ? std::next(client) : clients_.erase(client);
      }
      if (waits[1].revents != 0) accept_one();
    }
  }

 private:
  bool accepting() const { return Clock::now() >= no_accept_until_; }

  int milliseconds_to_wait() const {
    std::optional<Clock::time_point> next;
    for (const Client& client : clients_)
      if (!next || client.until < *next) next = client.until;
    if (!accepting() && (!next || no_accept_until_ < *next)) next = no_accept_until_;
    if (!next) return -1;
    const double left = Seconds(*next - Clock::now()).count();
    return left <= 0 ? 0 : static_cast<int>(left * 1000) + 1;
  }

  void accept_one() {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
      // Without file handles the listener stays readable; asking at once again would spin.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        no_accept_until_ = Clock::now() + std::chrono::seconds(1);
      return;
    }
    if (clients_.size() >= options_.most_clients) {
      ::close(clients_.front().socket);
      clients_.pop_front();
    }
    clients_.push_back({.socket = socket,
                        .until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                    Seconds(options_.patience))});
  }

  // False: the client is done, or cannot be served.
  bool serve(Client& client) {
    if (client.phase == Client::asking && !listen(client)) return false;
    if (client.phase == Client::answered && !speak(client)) return false;
    return client.phase != Client::leaving || hear_out(client);
  }

  bool listen(Client& client) {
    char buffer[4096];
    const ssize_t got = ::recv(client.socket, buffer, sizeof buffer, 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    client.heard.append(buffer, static_cast<size_t>(got));
    if (head_is_whole(client.heard)) {
      client.answer = answer_metrics_request(client.heard, options_.text);
    } else if (client.heard.size() > options_.most_request) {
      client.answer = http_answer(
          "431 Request Header Fields Too Large",
          fmt::format("a request of at most {} bytes was expected\n", options_.most_request));
    } else {
      return true;
    }
    client.heard.clear();
    client.phase = Client::answered;
    return true;
  }

  static bool speak(Client& client) {
    const ssize_t gone = ::send(client.socket, client.answer.data() + client.sent,
                                client.answer.size() - client.sent, MSG_NOSIGNAL);
    if (gone < 0) return errno == EAGAIN || errno == EINTR;
    client.sent += static_cast<size_t>(gone);
    if (client.sent < client.answer.size()) return true;
    ::shutdown(client.socket, SHUT_WR);
    client.answer.clear();
    client.phase = Client::leaving;
    return true;
  }

  static bool hear_out(Client& client) {
    char buffer[4096];
    const ssize_t got = ::recv(client.socket, buffer, sizeof buffer, 0);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
  }

  const MetricsServerOptions& options_;
  const int listener_, wake_;
  std::list<Client> clients_;  // the one that came first stands first
  Clock::time_point no_accept_until_ = Clock::now();
};

int open_listener(int64_t port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0)
    throw Error(ErrorKind::config, fmt::format("cannot serve metrics: {}", std::strerror(errno)));
  const int yes = 1;  // a run that starts right after another gets the same port
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(listener, 16) == 0)
    return listener;
  const int problem = errno;
  ::close(listener);
  const std::string why = problem == EADDRINUSE ? "another program uses that port"
                          : problem == EACCES   ? "this user may not use that port"
                                                : std::strerror(problem);
  throw Error(ErrorKind::config, fmt::format("cannot serve metrics at 127.0.0.1:{}: {}", port, why))
      .hint("give --metrics-port a free port from 1024 up");
}

}  // namespace

std::string answer_metrics_request(const std::string& head,
                                   const std::function<std::string()>& text) {
  const std::vector<std::string> words = split(trim(head.substr(0, head.find('\n'))), ' ');
  if (words.size() != 3 || !words[2].starts_with("HTTP/1.") || !words[1].starts_with("/"))
    return http_answer("400 Bad Request", "a request such as GET /metrics HTTP/1.1 was expected\n");
  const bool with_body = words[0] != "HEAD";
  if (words[0] != "GET" && words[0] != "HEAD")
    return http_answer("405 Method Not Allowed", "only GET and HEAD are served\n", true,
                       "Allow: GET, HEAD\r\n");
  const std::string path = words[1].substr(0, words[1].find('?'));
  if (path == "/")
    return http_answer("200 OK", "tandem serves its figures at /metrics\n", with_body);
  if (path != "/metrics")
    return http_answer("404 Not Found", "there is /metrics and nothing else\n", with_body);
  try {
    return http_answer("200 OK", text(), with_body);
  } catch (const std::exception& error) {
    return http_answer("500 Internal Server Error", explain(error).sentence + "\n", with_body);
  }
}

MetricsServer::MetricsServer(MetricsServerOptions options)
    : options_(std::move(options)), listener_(open_listener(options_.port)) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  wake_ = ::eventfd(0, EFD_CLOEXEC);
  if (wake_ < 0) {
    ::close(listener_);
    throw Error(ErrorKind::config, fmt::format("cannot serve metrics: {}", std::strerror(errno)));
  }
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "metrics");
    try {
      ServerLoop(options_, listener_, wake_).run();
    } catch (const std::exception& error) {  // a run does not fail for it
      log_warning("metrics are served no more: {}", explain(error).sentence);
    }
  });
}

MetricsServer::~MetricsServer() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
  thread_.join();
  ::close(listener_);
  ::close(wake_);
}

std::string MetricsServer::address() const {
  return fmt::format("http://127.0.0.1:{}/metrics", port_);
}

}  // namespace tandem
