// The peer of `tandem bench data`, run as a program.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "observe/data_bench.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

struct Output {
  int code = 0;
  std::string text;
};

// Standard output of a program given as words; its complaints go where ours go.
Output run(const std::vector<std::string>& words) {
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
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(pipe_ends[1]);
  Output output;
  char buffer[4096];
  for (ssize_t got; (got = read(pipe_ends[0], buffer, sizeof buffer)) > 0;)
    output.text.append(buffer, static_cast<size_t>(got));
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  output.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return output;
}

}  // namespace

PeerBench bench_peer(const PeerOptions& options) {
  std::vector<std::string> words{options.python, options.script,
                                 "--data",       options.data,
                                 "--rate",       std::to_string(options.sample_rate),
                                 "--workers",    std::to_string(options.workers),
                                 "--batch-size", std::to_string(options.batch_size),
                                 "--seconds",    fmt::format("{}", options.seconds),
                                 "--mel",        options.mel};
  if (!options.tokenizer.empty()) {
    words.push_back("--tokenizer");
    words.push_back(options.tokenizer);
  }
  const Output output = run(words);
  if (output.code != 0) {
    throw Error(ErrorKind::io,
                fmt::format("the peer program `{}` ended with {}", join(words, " "), output.code))
        .hint("scripts/references.sh installs what it needs");
  }
  return parse_peer(output.text);
}

PeerBench parse_peer(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("clips_per_second")) {
    throw Error(
        ErrorKind::corrupt,
        "the peer program printed no JSON object with `clips_per_second`: " + text.substr(0, 200));
  }
  PeerBench peer{.clips_per_second = json["clips_per_second"].get<double>(),
                 .name = json.value("peer", "peer")};
  if (json.contains("stage_clips_per_second") && json["stage_clips_per_second"].is_object()) {
    for (const auto& [name, rate] : json["stage_clips_per_second"].items())
      if (rate.is_number()) peer.stages.push_back({name, rate.get<double>()});
  }
  return peer;
}

}  // namespace tandem
