#include "config/resolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/check.h"
#include "tandem/error.h"

namespace tandem {

namespace {

bool given_by_a_person(Source::Layer layer) {
  return layer != Source::Layer::standard && layer != Source::Layer::level &&
         layer != Source::Layer::preset && layer != Source::Layer::group;
}

std::vector<Match> find_known(const std::string& name, const std::string& place) {
  std::vector<Match> matches = find_names(name);
  if (!matches.empty()) return matches;
  if (!is_name_prefix(name)) throw unknown_name(name, place);
  throw Error(ErrorKind::config,
              fmt::format("`{0}` is a section; expected `{0}.name` ({1})", name, place));
}

// `batch_size=auto` speaks to the sections that know the word, not to all that have a batch size.
std::vector<Match> addressed(std::vector<Match> matches, const Value& value) {
  const auto knows_auto = [](const Match& match) { return match.setting->auto_is_null; };
  if (value == Value("auto") && std::any_of(matches.begin(), matches.end(), knows_auto))
    std::erase_if(matches, [&](const Match& match) { return !knows_auto(match); });
  return matches;
}

}  // namespace

Resolution::Resolution() {
  for (const Setting& setting : settings()) out_.sources[setting.key] = Source{};
}

void Resolution::apply(const std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    const auto matches = addressed(find_known(entry.name, entry.place), entry.value);
    for (const Match& match : matches) apply_one(match, entry);
  }
}

void Resolution::apply_one(const Match& match, const Entry& entry) {
  const Setting& setting = *match.setting;
  const Value value = checked_value(setting, entry.value, entry.place);
  if (given_by_a_person(entry.source.layer)) remember(match, entry, value);
  if (match.old) {
    notice(fmt::format("`{}` is an old name of `{}`; both work",
                       match.name.substr(match.name.rfind('.') + 1), setting.key));
  }
  setting.set(out_.config, value);
  out_.sources[setting.key] = entry.source;
}

void Resolution::remember(const Match& match, const Entry& entry, const Value& value) {
  std::vector<Given>& all = given_[match.setting];
  const Given now{match.name, value, entry.source.layer, entry.place};
  const auto same_name = [&](const Given& given) { return given.name == match.name; };
  const auto before = std::find_if(all.begin(), all.end(), same_name);
  if (before == all.end()) {
    all.push_back(now);
    return;
  }
  // The keys of a file have no order that could decide between `seed: 1` and `training: {seed: 2}`.
  const bool same_file = before->layer == Source::Layer::file && now.layer == Source::Layer::file;
  if (same_file && !(before->value == value)) {
    throw Error(ErrorKind::config, fmt::format("`{}` is given twice: {} ({}) and {} ({})",
                                               match.setting->key, format_value(before->value),
                                               before->place, format_value(value), now.place));
  }
  *before = now;
}

void Resolution::remove(const std::string& name, const std::string& place) {
  for (const Match& match : find_known(name, place)) {
    const Setting& setting = *match.setting;
    setting.set(out_.config, setting.default_value);
    out_.sources[setting.key] =
        Source{Source::Layer::override_, fmt::format("default ({})", place)};
    given_.erase(&setting);
  }
}

void Resolution::notice(const std::string& line) {
  if (std::find(out_.notices.begin(), out_.notices.end(), line) == out_.notices.end())
    out_.notices.push_back(line);
}

Resolved Resolution::finish() {
  for (const auto& [setting, all] : given_) {
    for (const Given& other : all) {
      const Given& first = all.front();
      if (other.value == first.value) continue;
      throw Error(ErrorKind::config,
                  fmt::format("`{}` is {} ({}) and `{}` is {} ({}), but both are names of `{}`",
                              first.name, format_value(first.value), first.place, other.name,
                              format_value(other.value), other.place, setting->key))
          .hint("give one of them, or the same value to both");
    }
  }
  return std::move(out_);
}

}  // namespace tandem
