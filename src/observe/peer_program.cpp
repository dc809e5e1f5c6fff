#include "observe/peer_program.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "config/config_dir.h"
#include "tandem/error.h"
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
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) throw Error(ErrorKind::io, "no pipe for the peer program");
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], STDOUT_FILENO);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(pipe_ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(pipe_ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == 0) return text;
  throw Error(ErrorKind::io,
              fmt::format("the peer program `{}` ended with {}", join(words, " "), code))
      .hint("scripts/references.sh installs what it needs");
}

}  // namespace tandem
