#include "cli/entry.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

#include "cli/command.h"
#include "device/torch_errors.h"
#include "tandem/error.h"
#include "util/log.h"

namespace tandem {
namespace {

LogOptions log_options(const Arguments& arguments) {
  return {.verbosity = arguments.has("--quiet")     ? -1
                       : arguments.has("--verbose") ? 1
                                                    : 0,
          .json = arguments.has("--json-log"),
          .file = arguments.value("--log-file"),
          .reserve_stdout = arguments.has("--json") || arguments.has("--print-config") ||
                            arguments.has("--format") || arguments.has("--stream")};
}

int run_program(std::vector<std::string> words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    print(program_help());
    return words.empty() ? 2 : 0;
  }
  if (words[0] == "--version") words[0] = "version";
  const Command& command = command_named(words[0]);
  words.erase(words.begin());
  const Arguments arguments = parse_arguments(command, words);
  if (arguments.has("--help")) {
    print(command_help(command));
    return 0;
  }
  set_up_log(log_options(arguments));
  return command.run(arguments);
}

int report(const Explanation& explanation) {
  if (!explanation.reported) {
    const std::string hint = explanation.hint.empty() ? "" : " (hint: " + explanation.hint + ")";
    log_error("{}{}", explanation.sentence, hint);
  }
  return exit_code(explanation.kind);
}

// An exception that nobody can catch any more, of a thread or while another is on its way, gets its
// sentence too. Several threads may come here at once: the first speaks.
[[noreturn]] void end_badly() {
  static std::atomic_flag spoke = ATOMIC_FLAG_INIT;
  if (spoke.test_and_set())
    for (;;) pause();
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
    log_error("the program ended itself (terminate was called)");
  } catch (const std::exception& error) {
    log_error("the program had to end at once: {}", explain_with_torch(error).sentence);
  } catch (...) {
    log_error("the program had to end at once: an exception of unknown kind");
  }
  std::abort();
}

}  // namespace

int enter_program(std::vector<std::string> words) {
  std::set_terminate(end_badly);
  try {
    return run_program(std::move(words));
  } catch (const std::exception& error) {
    return report(explain_with_torch(error));
  }
}

void leave_program(int code) {
#ifdef __SANITIZE_ADDRESS__
  std::exit(code);  // it looks for leaks on the way out
#else
  std::fflush(nullptr);
  _exit(code);
#endif
}

}  // namespace tandem
