// Ctrl-C and termination, turned into a request the loops look at. The first signal asks; a second
// Ctrl-C leaves at once with exit code 130.
#pragma once

namespace tandem {

enum class StopRequest { none, interrupted /* SIGINT */, terminated /* SIGTERM, SIGUSR1 */ };

void catch_stop_signals();
StopRequest stop_requested();
void request_stop(StopRequest request);  // what the signal handlers call; tests too

}  // namespace tandem
