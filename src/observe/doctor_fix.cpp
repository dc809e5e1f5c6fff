#include "observe/doctor_fix.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>
#include <set>

#include "config/check.h"
#include "config/names.h"
#include "observe/doctor_yaml.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }
std::string section_part(const std::string& path) {
  return path.find('.') == path.npos ? "" : path.substr(0, path.rfind('.'));
}

// A text that is loaded as a settings file would be; removed again.
class TrialFile {
 public:
  explicit TrialFile(const std::string& text) {
    std::string pattern = (fs::temp_directory_path() / "tandem-doctor-XXXXXX").string();
    const int file = ::mkstemp(pattern.data());
    if (file < 0) throw Error(ErrorKind::io, "cannot make a temporary file to try the settings in");
    ::close(file);
    path_ = pattern;
    write_file_atomically(path_, text);
  }
  ~TrialFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  TrialFile(const TrialFile&) = delete;
  TrialFile& operator=(const TrialFile&) = delete;

  Resolved resolve(const std::string& told_as) const {
    try {
      return tandem::resolve({.config_file = path_, .use_environment = false});
    } catch (const Error& error) {
      std::string sentence = error.what();
      for (size_t at; (at = sentence.find(path_)) != sentence.npos;)
        sentence.replace(at, path_.size(), told_as);
      throw Error(ErrorKind::config, "this cannot be mended line by line: " + sentence)
          .hint(error.hint().empty() ? "mend it by hand; nothing was changed" : error.hint());
    }
  }

 private:
  std::string path_;
};

class Mender {
 public:
  Mender(const std::string& file, const SettingsMachine& machine)
      : file_(file), machine_(machine), text_(read_file(file)), lines_(split_lines(text_)) {}

  ConfigFix mend() {
    make_loadable();
    set_better_values();
    ConfigFix fix{.before = text_, .after = join(lines_, "")};
    fix.diff = unified_diff(split_lines(text_), lines_, file_);
    for (const auto& [line, reason] : reasons_)
      fix.reasons.push_back(fmt::format("line {}: {}", line + 1, reason));
    return fix;
  }

 private:
  void change(size_t line, const std::string& with, const std::string& reason) {
    lines_[line] = with;
    if (!reason.empty()) reasons_.emplace(line, reason);
  }

  void drop(const YamlLine& line, const std::string& reason) {
    for (size_t i = line.number; i <= line.last; ++i) {
      const bool blank = trim(lines_[i]).empty() || trim(lines_[i])[0] == '#';
      if (blank) continue;
      change(i, commented_out(lines_[i], i == line.number ? reason : ""),
             i == line.number ? fmt::format("`{}` made a comment: {}", line.path, reason) : "");
    }
  }

  void make_loadable() {
    std::set<std::string> seen;
    const std::vector<YamlLine> scanned = scan_yaml(lines_);
    for (const YamlLine& line : scanned)
      for (const Match& match : find_names(line.path)) known_.insert(match.setting->key);
    size_t dropped_to = 0;
    for (const YamlLine& line : scanned) {
      if (line.number < dropped_to) continue;
      const std::vector<Match> matches = find_names(line.path);
      const bool section = matches.empty() && is_name_prefix(line.path);
      if (matches.empty() && !section) {
        mend_unknown(line);
        dropped_to = line.last + 1;
      } else if (!seen.insert(line.path).second && line.plain && !section) {
        drop(line, "it is given twice, and the first one counts");
      } else if (!section && line.plain) {
        mend_misfit(line, *matches[0].setting);
      }
    }
  }

  void mend_unknown(const YamlLine& line) {
    const std::vector<std::string> near = nearest_settings(line.path);
    // At the top a setting may stand under its whole name, or flat: as it was written.
    const bool top = line.name == line.path;
    const bool flat = line.path.find('.') == line.path.npos;
    const bool one = !near.empty() && (flat || section_part(near[0]) == section_part(line.path)) &&
                     !known_.contains(find_names(near[0])[0].setting->key) && line.plain &&
                     !line.value.empty();
    const auto distance = [&](const std::string& name) {
      return edit_distance(last_part(line.path), last_part(name));
    };
    const bool certain = one && (near.size() == 1 || distance(near[0]) < distance(near[1]));
    if (certain && fits(*find_names(near[0])[0].setting, line.value)) {
      const std::string renamed =
          with_name(lines_[line.number], line.name, top ? near[0] : last_part(near[0]));
      if (!renamed.empty()) {
        known_.insert(find_names(near[0])[0].setting->key);
        change(line.number, renamed,
               fmt::format("`{}` is no setting; `{}` is", line.path, near[0]));
        return;
      }
    }
    drop(line, near.empty() ? "there is no such setting"
                            : fmt::format("there is no such setting; near is {}", near[0]));
  }

  static Value parsed(const std::string& written) {
    if (written.empty()) return Value();
    const bool quoted = written.size() > 1 && (written[0] == '"' || written[0] == '\'');
    return quoted ? Value(written.substr(1, written.size() - 2)) : parse_value(written);
  }

  static bool fits(const Setting& setting, const std::string& written) {
    try {
      checked_value(setting, parsed(written), "");
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  // Empty where none, or more than one, is what was meant.
  static std::string nearest_choice(const Setting& setting, const std::string& written) {
    const std::vector<std::string> near = nearest_names(written, setting.choices);
    if (near.empty()) return "";
    const bool certain =
        near.size() == 1 || edit_distance(written, near[0]) < edit_distance(written, near[1]);
    return certain ? near[0] : "";
  }

  void mend_misfit(const YamlLine& line, const Setting& setting) {
    if (fits(setting, line.value)) return;
    const std::string nearest = nearest_choice(setting, parsed(line.value).spelling());
    const std::string value = nearest.empty() ? format_value(setting.default_value) : nearest;
    const std::string changed = with_value(lines_[line.number], line.name, value);
    const std::string reason =
        fmt::format("`{}` must be {}, not `{}`: set to {} {}", line.path, expected(setting),
                    line.value, nearest.empty() ? "the default," : "the nearest,", value);
    if (changed.empty()) {
      drop(line, "it has no value");
    } else {
      change(line.number, changed, reason);
    }
  }

  // Of a setting that the file gives: its line, by the place the resolver remembers.
  std::optional<size_t> line_of(const Resolved& settings, const std::string& key) const {
    const Source& source = settings.sources.at(key);
    if (source.layer != Source::Layer::file) return std::nullopt;
    const auto line = parse_int(source.where.substr(source.where.rfind(':') + 1));
    if (!line || *line < 1 || static_cast<size_t>(*line) > lines_.size()) return std::nullopt;
    return static_cast<size_t>(*line - 1);
  }

  bool put_value(size_t line, const Setting& setting, const std::string& value) {
    std::vector<std::string> names{setting.name()};
    for (const auto* others : {&setting.aliases, &setting.old_names})
      for (const std::string& other : *others) names.push_back(last_part(other));
    for (const std::string& name : names) {
      for (const std::string& written : {name, setting.section() + "." + name}) {
        const std::string changed = with_value(lines_[line], written, value);
        if (changed.empty()) continue;
        lines_[line] = changed;
        return true;
      }
    }
    return false;
  }

  void set_better_values() {
    const Resolved settings = TrialFile(join(lines_, "")).resolve(file_);
    std::vector<SettingCheck> checks = check_speed_settings(settings.config, machine_);
    for (SettingCheck& check : check_contradictions(settings, machine_))
      checks.push_back(std::move(check));
    std::map<std::string, Value> wanted;
    for (const SettingCheck& check : checks) {
      if (!check.fix || wanted.contains(check.fix->key)) continue;
      const Setting& setting = *find_by_key(check.fix->key);
      const auto line = line_of(settings, setting.key);
      const std::string value = format_value(check.fix->value);
      if (!line || !put_value(*line, setting, value)) continue;
      wanted.emplace(setting.key, check.fix->value);
      reasons_.emplace(*line, fmt::format("{}, now {}", check.check.found, value));
    }
    const Resolved after = TrialFile(join(lines_, "")).resolve(file_);
    for (const auto& [key, value] : wanted) {
      if (find_by_key(key)->get(after.config) == value) continue;
      throw Error(ErrorKind::config,
                  fmt::format("`{}` cannot be changed in `{}` line by line", key, file_))
          .hint(fmt::format("set {}: {} by hand; nothing was changed", key, format_value(value)));
    }
  }

  std::string file_;
  const SettingsMachine& machine_;
  std::string text_;
  std::vector<std::string> lines_;
  std::set<std::string> known_;  // keys of the settings the file gives
  std::multimap<size_t, std::string> reasons_;
};

std::string backup_name(const std::string& file) {
  char time[32];
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::strftime(time, sizeof time, "%Y%m%d-%H%M%S", &parts);
  const std::string name = fmt::format("{}.bak-{}", file, time);
  std::error_code ignored;
  std::string free = name;
  for (int i = 2; fs::exists(free, ignored); ++i) free = fmt::format("{}-{}", name, i);
  return free;
}

}  // namespace

ConfigFix plan_config_fix(const std::string& file, const SettingsMachine& machine) {
  return Mender(file, machine).mend();
}

std::string write_config_fix(const std::string& file, const ConfigFix& fix) {
  // A link keeps pointing at its file, which is the one that is changed.
  std::error_code error;
  const fs::path real = fs::canonical(file, error);
  struct stat about {};
  const bool there = !error && ::stat(real.c_str(), &about) == 0;
  // Whoever took the permission to write away meant it, for the superuser too.
  if (!there || (about.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0 ||
      ::access(real.c_str(), W_OK) != 0) {
    throw Error(ErrorKind::io, fmt::format("`{}` may not be written, so it was not changed", file))
        .hint("chmod u+w it, or copy it and name the copy with --config");
  }
  if (read_file(real) != fix.before) {
    throw Error(ErrorKind::io, fmt::format("`{}` was changed by somebody meanwhile", file))
        .hint("run tandem doctor --fix again");
  }
  const std::string backup = backup_name(fs::is_symlink(file, error) ? real.string() : file);
  const mode_t mode = about.st_mode & 07777;
  write_file_atomically(backup, fix.before);
  ::chmod(backup.c_str(), mode);
  write_file_atomically(real, fix.after);
  ::chmod(real.c_str(), mode);
  return backup;
}

}  // namespace tandem
