#include "data/corpus/bad_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "data/corpus/tsv_field.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {

namespace {

std::string in_words(const std::map<std::string, int64_t>& reasons) {
  std::vector<std::string> parts;
  for (const auto& [reason, count] : reasons) parts.push_back(fmt::format("{} {}", count, reason));
  return join(parts, ", ");
}

}  // namespace

BadFiles::BadFiles(std::string list, int64_t clips, const BadFileLimits& limits, bool waits)
    : list_(std::move(list)), limits_(limits), seen_(static_cast<size_t>(clips)), begun_(!waits) {}

void BadFiles::note_tried(int64_t clip) {
  std::lock_guard lock(mutex_);
  uint8_t& seen = seen_[static_cast<size_t>(clip)];
  tried_ += seen == 0;
  if (seen == 0) seen = 1;
}

double BadFiles::share() const {
  const auto all = static_cast<int64_t>(seen_.size());
  const int64_t of = std::max(tried_, std::min<int64_t>(all, 100));
  return static_cast<double>(bad_) / static_cast<double>(std::max<int64_t>(1, of));
}

void BadFiles::add(int64_t clip, const std::string& path, const std::string& reason,
                   const std::string& sentence) {
  std::unique_lock lock(mutex_);
  uint8_t& seen = seen_[static_cast<size_t>(clip)];
  if (seen == 2) return;
  tried_ += seen == 0;
  seen = 2;
  ++bad_;
  ++reasons_[reason];
  append(path, reason, sentence);
  const double bad_share = share();
  const bool warn = bad_share > limits_.warn_share && !warned_;
  warned_ = warned_ || warn;
  const int64_t bad = bad_, tried = tried_;
  lock.unlock();
  const std::string where = list_.empty() ? "" : fmt::format("; they are listed in `{}`", list_);
  if (bad_share > limits_.stop_share) {
    throw Error(ErrorKind::data,
                fmt::format("{} clips of the {} tried cannot be used ({}), more than {:g} %{}", bad,
                            tried, summary(), 100 * limits_.stop_share, where))
        .hint(advice());
  }
  if (warn) {
    log_warning("more than {:g} % of the clips cannot be used so far ({}){}",
                100 * limits_.warn_share, summary(), where);
  }
}

void BadFiles::leave_out(int64_t clip, const std::string& path, const std::string& reason,
                         const std::string& sentence) {
  std::lock_guard lock(mutex_);
  uint8_t& seen = seen_[static_cast<size_t>(clip)];
  if (seen == 2) return;
  seen = 2;
  ++left_out_[reason];
  append(path, reason, sentence);
}

void BadFiles::append(const std::string& path, const std::string& reason,
                      const std::string& sentence) {
  if (list_.empty()) return;
  unwritten_.push_back(tsv_field(path) + '\t' + reason + '\t' + tsv_field(sentence));
  if (begun_) write();
}

void BadFiles::write() {
  if (unwritten_.empty()) return;
  if (!file_.is_open()) {
    file_.open(list_, std::ios::app);
    if (file_.tellp() == 0) file_ << "path\treason\tsentence\n";
  }
  for (const std::string& line : unwritten_) file_ << line << '\n';
  file_.flush();
  unwritten_.clear();
}

void BadFiles::begin() {
  const std::lock_guard lock(mutex_);
  begun_ = true;
  std::set<std::string> listed;  // by an earlier part of the run
  std::ifstream before(list_);
  for (std::string line; std::getline(before, line);) listed.insert(line);
  if (!unwritten_.empty()) log_info("clips that are left out are listed in `{}`", list_);
  std::erase_if(unwritten_, [&](const std::string& line) { return listed.contains(line); });
  write();
}

int64_t BadFiles::total() const {
  std::lock_guard lock(mutex_);
  return bad_;
}

std::map<std::string, int64_t> BadFiles::by_reason() const {
  std::lock_guard lock(mutex_);
  return reasons_;
}

std::string BadFiles::advice() const {
  const std::map<std::string, int64_t> reasons = by_reason();
  const auto most_are = [&](const char* reason) {
    const auto found = reasons.find(reason);
    return found != reasons.end() && 2 * found->second > total();
  };
  if (most_are("changed"))
    return "they changed since they were prepared, or were copied without their times: prepare the "
           "dataset again";
  if (most_are("missing")) return "is the dataset still where it was prepared?";
  return "mend the files, run `tandem prepare` again, or raise data.max_bad_share";
}

std::string BadFiles::summary() const { return in_words(by_reason()); }

std::map<std::string, int64_t> BadFiles::left_out_by_reason() const {
  std::lock_guard lock(mutex_);
  return left_out_;
}

std::string BadFiles::summary_of_left_out() const { return in_words(left_out_by_reason()); }

}  // namespace tandem
