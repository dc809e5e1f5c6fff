// A small HTTP server on the loopback address that gives one text to whoever asks for /metrics.
// One thread of its own does all of it: no client, however slow or broken, takes time from anyone
// but that thread, and none keeps the others waiting for longer than `patience`.
//
//   MetricsServer server({.port = 9400, .text = [&] { return figures.text(); }});
//
// It stops when it goes out of scope; `text` must stay callable until then.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace tandem {

struct MetricsServerOptions {
  int64_t port = 0;                   // 0: any free one
  std::function<std::string()> text;  // called on the server's thread
  size_t most_clients = 16;           // one more, and the one that came first has to go
  size_t most_request = 8192;         // bytes of a request's head
  double patience = 5;                // seconds a client has for all of it
};

class MetricsServer {
 public:
  // Throws Error(config) when the port is taken or may not be used.
  explicit MetricsServer(MetricsServerOptions options);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  int port() const { return port_; }
  std::string address() const;  // "http://127.0.0.1:9400/metrics"

 private:
  const MetricsServerOptions options_;
  int listener_ = -1, wake_ = -1;
  int port_ = 0;
  std::thread thread_;
};

// The whole answer to a request's head, with status line and headers. What `text` throws becomes a
// 500 with its sentence.
std::string answer_metrics_request(const std::string& head,
                                   const std::function<std::string()>& text);

}  // namespace tandem
