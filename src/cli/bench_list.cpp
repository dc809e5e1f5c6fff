#include "cli/bench_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"
#include "util/text.h"

namespace tandem {

const std::vector<Bench>& benches() {
  static const std::vector<Bench> table = {data_bench(), step_bench(), train_bench(),
                                           synthesize_bench(), music_bench()};
  return table;
}

const std::vector<BenchOption>& bench_options() {
  static const std::vector<BenchOption> table = {
      {{"--data", "DIR", "a dataset or an index"}, {"data", "step"}, true},
      {{"--seconds", "S", "how long to measure, once warm (default 10)"}, {"data", "step"}},
      {{"--step-ms", "T", "beside a stand-in for training of T ms a step (step: default 20)"},
       {"data", "step"},
       true},
      {{"--size", "NAME", "of the model (default normal; generate: small)"},
       {"train", "synthesize", "generate"},
       true},
      {{"--batches", "N,N",
        "rows (train, default 16,3), texts (synthesize, 16,64,256) or clips (generate, "
        "1,8,32,64,128) at once"},
       {"train", "synthesize", "generate"}},
      {{"--precision", "P", "fp32, tf32, bf16, fp16, or auto (not train, whose default is bf16)"},
       {"train", "synthesize", "generate"},
       true},
      {{"--places", "N", "of a row: latents, text and codes (default 632, or what the size has)"},
       {"train"},
       true},
      {{"--fp8", "", "products of 8-bit floats where training.fp8_products has them"},
       {"train"},
       true},
      {{"--gpt-alone", "", "without the conditioning encoder, which the peer does not have"},
       {"train"},
       true},
      {{"--ways", "", "also with graph mode and kernel fusion on and off, and with recompute"},
       {"train"}},
      {{"--codes", "N", "of a text (default 215: ten seconds)"}, {"synthesize"}, true},
      {{"--steps", "N", "of a clip (default 1500: thirty seconds)"}, {"generate"}, true},
      {{"--kv", "C", "keys and values kept as they are (same) or in int8"}, {"generate"}, true},
      {{"--whole", "", "also with EnCodec and writing, as a long run has them"}, {"generate"}},
      {{"--peer", "", "also run what everybody uses, on the same work"},
       {"data", "train", "synthesize", "generate"}},
      {{"--peer-compile", "", "also the peer under torch.compile (minutes)"},
       {"train", "synthesize"}},
      {{"--list", "", "the benchmarks there are"}, {}},
      {{"--warm-up", "N", "whole runs before the first that counts (default 0)"}, {}},
      {{"--repeat", "N", "runs that count: mean and deviation (default 1)"}, {}},
      {{"--format", "F", "md, csv or json (default md)"}, {}},
      {{"--out", "FILE", "also write FILE.md, FILE.csv or FILE.json, by its ending"}, {}},
      {{"--compare", "OLD.json", "flag what is slower than there; exit 1 when anything is"}, {}},
      {{"--tolerance", "P", "how many per cent slower is too slow (default 10)"}, {}},
      {{"--dry-run", "", "check the options, print what would run, and stop"}, {}}};
  return table;
}

std::string bench_list() {
  std::string text;
  for (const Bench& bench : benches()) {
    std::vector<std::string> flags;
    for (const BenchOption& option : bench_options()) {
      if (std::ranges::find(option.benches, bench.name) != option.benches.end())
        flags.push_back(option.option.flag);
    }
    text += fmt::format("{:<11} {}\n            {}\n", bench.name, bench.summary, join(flags, " "));
  }
  return text;
}

const Bench& bench_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Bench& bench : benches()) {
    if (name == bench.name) return bench;
    names.emplace_back(bench.name);
  }
  throw Error(ErrorKind::usage,
              name.empty() ? "`tandem bench` needs the name of a benchmark"
                           : "there is no benchmark `" + name + "`." + did_you_mean(name, names))
      .hint("tandem bench --list");
}

void refuse_foreign_options(const Bench& bench, const Arguments& arguments) {
  for (const BenchOption& option : bench_options()) {
    if (!arguments.has(option.option.flag) || option.benches.empty()) continue;
    if (std::ranges::find(option.benches, bench.name) != option.benches.end()) continue;
    throw Error(ErrorKind::usage,
                fmt::format("`tandem bench {}` has no option `{}`, which belongs to {}", bench.name,
                            option.option.flag, join(option.benches, ", ")))
        .hint("tandem bench --list");
  }
}

namespace {

int64_t count_of(const std::string& flag, const std::string& text, int64_t most) {
  const auto value = parse_int(text);
  if (value && *value > 0 && *value <= most) return *value;
  throw Error(ErrorKind::usage,
              fmt::format("{} is `{}`; expected whole numbers from 1 to {}", flag, text, most));
}

}  // namespace

int64_t count_option(const Arguments& arguments, const std::string& flag,
                     const std::string& otherwise, int64_t most) {
  return count_of(flag, arguments.value(flag, otherwise), most);
}

std::vector<int64_t> count_list(const Arguments& arguments, const std::string& flag,
                                const std::string& otherwise, int64_t most) {
  std::vector<int64_t> counts;
  for (const std::string& word : split(arguments.value(flag, otherwise), ','))
    counts.push_back(count_of(flag, word, most));
  return counts;
}

std::string choice_option(const Arguments& arguments, const std::string& flag,
                          const std::string& otherwise, const std::vector<std::string>& choices) {
  const std::string chosen = arguments.value(flag, otherwise);
  if (std::ranges::find(choices, chosen) != choices.end()) return chosen;
  const std::vector<std::string> but_last(choices.begin(), choices.end() - 1);
  throw Error(ErrorKind::usage, fmt::format("{} is `{}`; expected {} or {}", flag, chosen,
                                            join(but_last, ", "), choices.back()));
}

double number_option(const Arguments& arguments, const std::string& flag,
                     const std::string& otherwise, double least) {
  const std::string text = arguments.value(flag, otherwise);
  const auto value = parse_double(text);
  if (value && *value >= least) return *value;
  throw Error(ErrorKind::usage,
              fmt::format("{} is `{}`; expected a number of at least {}", flag, text, least));
}

}  // namespace tandem
