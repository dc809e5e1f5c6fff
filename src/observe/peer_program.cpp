#include "observe/peer_program.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "config/config_dir.h"
#include "tandem/error.h"
#include "util/child_process.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;

std::string reference_python() {
  if (const char* chosen = std::getenv("TANDEM_REFERENCE_PYTHON"); chosen && *chosen) return chosen;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path folder = cache && *cache ? fs::path(cache) : fs::path(home ? home : "") / ".cache";
  const fs::path python = folder / "tandem" / "reference" / "bin" / "python";
  if (fs::exists(python)) return python.string();
  throw Error(ErrorKind::io,
              "the peer's libraries are not installed: there is no `" + python.string() + "`")
      .hint("run scripts/references.sh, or set TANDEM_REFERENCE_PYTHON");
}

std::string peer_script(const std::string& name) {
  const fs::path script = config_dir().parent_path() / "bench" / "peers" / name;
  if (fs::exists(script)) return script.string();
  throw Error(ErrorKind::io, "the peer program `" + script.string() + "` is not there")
      .hint("run the bench from a checkout of the repository");
}

std::string run_peer_program(const std::vector<std::string>& words) {
  ChildProcess child(words, {.foreground = true});
  if (child.start_error() != 0) {
    throw Error(ErrorKind::io, fmt::format("cannot start the peer program `{}`: {}", words.front(),
                                           std::strerror(child.start_error())))
        .hint("scripts/references.sh installs what it needs");
  }
  std::string text = child.read_all();
  const int code = child.wait();
  if (code == 0) return text;
  throw Error(ErrorKind::io,
              fmt::format("the peer program `{}` ended with {}", join(words, " "), code))
      .hint("scripts/references.sh installs what it needs");
}

}  // namespace tandem
