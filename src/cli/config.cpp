#include <fmt/format.h>

#include "cli/command.h"
#include "cli/session.h"
#include "config/schema.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/log.h"

namespace tandem {
namespace {

int run_config(const Arguments& arguments) {
  if (arguments.rest.empty() || (arguments.rest[0] != "docs" && arguments.rest[0] != "show")) {
    throw Error(ErrorKind::usage, "`tandem config` needs `show` or `docs`")
        .hint("tandem help config");
  }
  Arguments others = arguments;
  others.rest.erase(others.rest.begin());
  if (arguments.rest[0] == "show") {
    print(print_config(resolve_settings(others)));
    return 0;
  }
  const std::string path = arguments.value("--out", "docs/settings.md");
  write_file_atomically(path, settings_markdown());
  log_info("wrote {}", path);
  return 0;
}

}  // namespace

Command config_command() {
  return {.name = "config",
          .summary = "print the settings, or write their documentation",
          .rest = "show|docs [key=value ...]",
          .details =
              "  tandem config show --preset rtx4090 batch_size=32    every value and where it "
              "came from\n"
              "  tandem config docs                                   writes docs/settings.md",
          .settings = ~0u,  // the flags of every command
          .chooses_devices = false,
          .options = {{"--out", "FILE", "where `docs` writes [docs/settings.md]"}},
          .run = run_config};
}

}  // namespace tandem
