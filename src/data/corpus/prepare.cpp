#include "data/corpus/prepare.h"

#include <fmt/format.h>

#include <filesystem>

#include "data/corpus/index_format.h"
#include "data/corpus/report_page.h"
#include "data/corpus/vocabulary_choice.h"
#include "tandem/error.h"
#include "text/clean.h"
#include "util/atomic_file.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

// An index that cannot be used is replaced, with a sentence; another file never is.
std::string check_place(const std::string& out) {
  std::error_code ignored;
  const fs::file_status status = fs::status(out, ignored);
  if (!fs::exists(status)) return "";
  const bool ours = looks_like_index(out) || fs::path(out).extension() == ".index";
  if (!fs::is_regular_file(status) || !ours) {
    throw Error(ErrorKind::io, fmt::format("`{}` is there and is no index; it is left alone", out))
        .hint("give another --out");
  }
  try {
    ClipIndex::open(out);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::corrupt)
      return std::string(error.what()) + "; it is written anew";
    throw;
  }
  return "";
}

void make_place(const std::string& out) {
  const fs::path folder = fs::path(out).parent_path();
  if (!folder.empty()) make_folder(folder);
}

void check_shares(const PrepareOptions& options, const PreparedCorpus& corpus, const Scan& scan) {
  const int64_t faults = scan.faults();
  const double share =
      static_cast<double>(faults) / static_cast<double>(std::max<int64_t>(1, corpus.summary.found));
  if (share > options.max_bad_share) {
    throw Error(
        ErrorKind::data,
        fmt::format("{} of {} clips are broken ({:.0f} %; at most {:.0f} %); they are listed "
                    "in `{}`",
                    faults, corpus.summary.found, 100 * share, 100 * options.max_bad_share,
                    corpus.dropped_list))
        .hint("repair or remove them, or allow more: --max-bad-share");
  }
  if (corpus.summary.kept.clips == 0) {
    throw Error(ErrorKind::data, fmt::format("none of {} clips is left; `{}` says why",
                                             corpus.summary.found, corpus.dropped_list))
        .hint("--min-seconds, --max-seconds and --max-tokens change what is kept");
  }
}

std::vector<JournalRecord> records_of(const Scan& scan) {
  std::vector<JournalRecord> records;
  for (const ScannedClip& scanned : scan.clips) {
    const bool known = scanned.facts().sample_rate > 0 || scanned.sound.fault >= 0;
    if (known) records.push_back(scanned.sound);
  }
  return records;
}

}  // namespace

std::string default_index(const std::string& input) {
  std::error_code ignored;
  fs::path path(input);
  if (fs::is_directory(path, ignored)) return (path / "tandem.index").string();
  return path.replace_extension(".index").string();
}

PreparedCorpus prepare_corpus(const PrepareOptions& options) {
  const auto notice = [&](const std::string& sentence) {
    if (options.on_notice && !sentence.empty()) options.on_notice(sentence);
  };
  if (!options.dataset.language.empty()) find_language(options.dataset.language);
  PreparedCorpus corpus;
  corpus.index = options.out.empty() ? default_index(options.input) : options.out;
  corpus.dropped_list = corpus.index + ".dropped.tsv";
  corpus.page = corpus.index + ".report.html";
  const DatasetLayout layout = detect_dataset(options.input);
  notice(layout.why);
  make_place(corpus.index);
  notice(check_place(corpus.index));
  ScanJournal journal(corpus.index + ".partial", corpus.index + ".scan");
  for (const std::string& sentence : journal.notices()) notice(sentence);
  const Dataset dataset = read_dataset(layout, options.dataset);
  for (const std::string& sentence : dataset.notices) notice(sentence);

  VocabularyChoice vocabulary(options,
                              (fs::path(corpus.index).parent_path() / "vocab.json").string());
  const Scan scan = scan_corpus(dataset, {.limits = options.limits,
                                          .quick = options.quick,
                                          .workers = options.workers,
                                          .tokenizer = vocabulary.maker(),
                                          .journal = &journal,
                                          .on_progress = options.on_progress});
  corpus.vocabulary = vocabulary.file();
  corpus.summary = summarise(dataset, scan);
  corpus.reused = scan.reused;
  corpus.seconds = scan.seconds;
  write_file_atomically(corpus.dropped_list, dropped_table(scan));
  write_file_atomically(corpus.page, report_page(corpus.summary, dataset, scan, corpus.page));
  check_shares(options, corpus, scan);
  ClipIndex::write(corpus.index, scan.kept(), dataset.layout.root);
  journal.finish(records_of(scan));
  return corpus;
}

}  // namespace tandem
