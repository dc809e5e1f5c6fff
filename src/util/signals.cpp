#include "util/signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace tandem {
namespace {

std::atomic<StopRequest> g_request{StopRequest::none};
static_assert(std::atomic<StopRequest>::is_always_lock_free, "used in a signal handler");

void on_signal(int signal) {
  // What our output is piped to may have got it too, and gone: writing there must not end us.
  std::signal(SIGPIPE, SIG_IGN);
  if (signal != SIGINT) {
    g_request = StopRequest::terminated;
    return;
  }
  if (g_request.exchange(StopRequest::interrupted) == StopRequest::interrupted) _exit(130);
}

}  // namespace

void catch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  for (int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaction(signal, &action, nullptr);
  // A terminal that is closed; under nohup it is ignored, and stays so.
  struct sigaction before = {};
  if (sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler == SIG_DFL)
    sigaction(SIGHUP, &action, nullptr);
}

StopRequest stop_requested() { return g_request; }
void request_stop(StopRequest request) { g_request = request; }

}  // namespace tandem
