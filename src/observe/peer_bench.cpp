// The peer of `tandem bench data`, run as a program.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "observe/data_bench.h"
#include "observe/peer_program.h"
#include "tandem/error.h"

namespace tandem {
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
  return parse_peer(run_peer_program(words));
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
