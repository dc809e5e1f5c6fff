#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/prepare_cache.h"
#include "cli/session.h"
#include "data/corpus/prepare.h"
#include "observe/progress.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/signals.h"
#include "util/text.h"
#include "util/threads.h"

namespace tandem {
namespace {

std::optional<double> number(const Arguments& arguments, const std::string& flag, double least,
                             double most) {
  if (!arguments.has(flag)) return std::nullopt;
  const auto value = parse_double(arguments.value(flag));
  if (!value || !(*value >= least && *value <= most)) {
    throw Error(ErrorKind::usage, fmt::format("{} is `{}`; expected a number from {} to {}", flag,
                                              arguments.value(flag), least, most));
  }
  return value;
}

int whole(const Arguments& arguments, const std::string& flag, int otherwise) {
  const std::optional<int> value = arguments.integer(flag);
  if (value && *value < 1) {
    throw Error(ErrorKind::usage,
                fmt::format("{} is `{}`; expected a whole number above 0", flag, *value));
  }
  return value.value_or(otherwise);
}

// The first word; those behind it are settings (`data.mel=xtts_dvae`).
std::string dataset_word(Arguments& arguments) {
  if (arguments.rest.empty()) {
    throw Error(ErrorKind::usage, "which dataset? expected a folder, a table or a tar")
        .hint("tandem prepare DIR --language en");
  }
  const std::string dataset = arguments.rest.front();
  arguments.rest.erase(arguments.rest.begin());
  for (const std::string& word : arguments.rest) {
    if (word.find('=') != std::string::npos) continue;
    throw Error(ErrorKind::usage,
                "expected one dataset, found `" + dataset + "` and `" + word + "`")
        .hint("tandem prepare DIR --language en");
  }
  return dataset;
}

PrepareOptions options_of(const Arguments& arguments) {
  PrepareOptions options;
  options.out = arguments.value("--out");
  options.dataset.language = arguments.value("--language");
  options.dataset.speaker_pattern = arguments.value("--speaker-pattern");
  constexpr double a_day = 86400;
  ClipLimits& limits = options.limits;
  limits.min_seconds = number(arguments, "--min-seconds", 0, a_day).value_or(limits.min_seconds);
  limits.max_seconds = number(arguments, "--max-seconds", 0, a_day).value_or(limits.max_seconds);
  limits.outlier_z = number(arguments, "--outlier-z", 0, 1e6).value_or(limits.outlier_z);
  if (arguments.has("--max-tokens")) limits.max_tokens = whole(arguments, "--max-tokens", 0);
  if (limits.min_seconds > limits.max_seconds) {
    throw Error(ErrorKind::usage, fmt::format("--min-seconds {} is above --max-seconds {}",
                                              limits.min_seconds, limits.max_seconds));
  }
  options.quick = arguments.has("--quick");
  options.workers = whole(arguments, "--workers", 0);
  options.max_bad_share =
      number(arguments, "--max-bad-share", 0, 1).value_or(options.max_bad_share);
  options.tokenizer_file = arguments.value("--tokenizer");
  options.train_tokenizer = whole(arguments, "--train-tokenizer", 0);
  options.extend_tokenizer = whole(arguments, "--extend-tokenizer", 0);
  return options;
}

// A moving line on a terminal, and some twenty plain lines elsewhere.
class ScanView {
 public:
  void update(const ScanProgress& progress) {
    const int64_t every = std::max<int64_t>(1, progress.total / 20);
    if (!bar_) bar_ = std::make_unique<Progress>(0, progress.total, every, "clip");
    int64_t done = progress.done;
    if (!terminal_wants_progress() && done < progress.total) done -= done % every;
    if (done == shown_) return;
    shown_ = done;
    const std::string known =
        progress.reused ? fmt::format(", {} known from before", progress.reused) : "";
    bar_->update(done, fmt::format("{:.0f} clips/s{}", progress.clips_per_second, known));
    if (done == progress.total) bar_.reset();
  }

 private:
  int64_t shown_ = 0;
  std::unique_ptr<Progress> bar_;
};

void print_json(const PreparedCorpus& corpus) {
  nlohmann::ordered_json document = to_json(corpus.summary);
  document["index"] = corpus.index;
  document["dropped_list"] = corpus.dropped_list;
  document["report"] = corpus.page;
  if (!corpus.vocabulary.empty()) document["tokenizer"] = corpus.vocabulary;
  document["reused"] = corpus.reused;
  document["scan_seconds"] = corpus.seconds;
  // Names of files may hold bytes that are no UTF-8.
  print(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_table(const PreparedCorpus& corpus) {
  std::string text = to_table(corpus.summary);
  text += fmt::format("written      {}\n             {}\n             {}\n", corpus.index,
                      corpus.dropped_list, corpus.page);
  if (!corpus.vocabulary.empty()) text += fmt::format("tokenizer    {}\n", corpus.vocabulary);
  text += fmt::format("next         tandem train --train-data \"{}\"", corpus.index);
  print(text);
}

int run_prepare(const Arguments& given) {
  Arguments arguments = given;
  const std::string dataset = dataset_word(arguments);
  PrepareOptions options = options_of(arguments);
  options.input = dataset;
  CacheRequest cache = cache_request(arguments);
  cache.workers = options.workers > 0 ? options.workers : static_cast<int>(allowed_cpus().size());
  const Resolved settings = resolve_settings(arguments);
  ScanView view;
  options.on_notice = [](const std::string& sentence) { log_info("{}", sentence); };
  options.on_progress = [&view](const ScanProgress& progress) { view.update(progress); };
  catch_stop_signals();
  const PreparedCorpus corpus = prepare_corpus(options);
  make_caches(cache, corpus.index, settings.config.data);
  arguments.has("--json") ? print_json(corpus) : print_table(corpus);
  return 0;
}

}  // namespace

Command prepare_command() {
  return {
      .name = "prepare",
      .summary = "turn a folder of speech into an index to train from",
      .rest = "DIR [key=value ...]",
      .details =
          "DIR is a dataset in any usual layout (LJSpeech, Coqui, NeMo, Hugging Face audiofolder,\n"
          "sounds with a .txt each, WebDataset tars), or one of its tables. Its sounds are opened\n"
          "and decoded once; a run that was cut off goes on where it stopped.\n\n"
          "  tandem prepare LJSpeech-1.1 --language en --train-tokenizer 6681\n"
          "  tandem prepare corpus/manifest.jsonl --language de --out corpus.index --quick",
      .settings = 0,
      .chooses_devices = false,
      .options =
          {{"--language", "L", "language of every clip, such as en or zh-cn"},
           {"--out", "INDEX", "where the index is written (default: DIR/tandem.index)"},
           {"--cache", "KINDS", "also compute `mels`, `codes` or both, with a comma between"},
           {"--dvae", "FILE",
            "DVAE (dvae.pth or safetensors) that makes the codes of --cache codes"},
           {"--tokenizer", "FILE", "count tokens with this vocabulary (Hugging Face JSON)"},
           {"--train-tokenizer", "N",
            "train a vocabulary of N tokens, vocab.json beside the index"},
           {"--extend-tokenizer", "N", "add N tokens to --tokenizer, vocab.json beside the index"},
           {"--speaker-pattern", "REGEX", "the speaker is the first group of this in a clip's id"},
           {"--min-seconds", "S", "drop shorter clips (default 0.5)"},
           {"--max-seconds", "S", "drop longer clips (default 11.6)"},
           {"--max-tokens", "N",
            "drop longer texts (default 200 tokens, 400 characters without a "
            "tokenizer)"},
           {"--outlier-z", "Z",
            "drop clips whose tokens a second lie so far out (default 6, 0: none)"},
           {"--max-bad-share", "X", "stop when more clips than this are broken (default 0.2)"},
           {"--quick", "", "read headers only: no statistics, no duplicates"},
           {"--workers", "N", "threads (default: one a core)"},
           {"--json", "", "one JSON document"}},
      .run = run_prepare};
}

}  // namespace tandem
