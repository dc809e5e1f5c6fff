#include "data/corpus/speakers.h"

#include <algorithm>
#include <regex>
#include <unordered_map>
#include <unordered_set>

#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr size_t longest_id = 512;  // std::regex recurses over what it matches

bool all_digits(const std::string& part) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !part.empty() && std::all_of(part.begin(), part.end(), digit);
}

bool is_marked(const std::string& part) {
  const std::string low = lower(part);
  return low.starts_with("spk") || low.starts_with("speaker") ||
         (low.starts_with('p') && all_digits(low.substr(1)));
}

}  // namespace

struct SpeakerRule::Pattern {
  std::regex regex;
};

SpeakerRule::SpeakerRule(const std::string& pattern) {
  if (pattern.empty()) return;
  try {
    pattern_ = std::make_unique<const Pattern>(Pattern{std::regex(pattern)});
  } catch (const std::regex_error& error) {
    throw Error(ErrorKind::usage, "`" + pattern + "` is no pattern: " + error.what())
        .hint("for ids such as p225_001: ^(p[0-9]+)_");
  }
  if (pattern_->regex.mark_count() == 0) {
    throw Error(ErrorKind::usage,
                "the pattern `" + pattern + "` has no group; expected the speaker in parentheses")
        .hint("for ids such as p225_001: ^(p[0-9]+)_");
  }
}

SpeakerRule::~SpeakerRule() = default;

SpeakerRule::Guess SpeakerRule::speaker_of(const std::string& id) const {
  const std::string name = id.substr(id.rfind('/') + 1);
  std::smatch match;
  if (pattern_ && id.size() <= longest_id && std::regex_search(id, match, pattern_->regex)) {
    return {match[1].str(), true};
  }
  const std::vector<std::string> parts = split(name, '_');
  for (const std::string& part : parts) {
    if (is_marked(part)) return {part, true};
    if (all_digits(part)) return {part, false};
  }
  return {parts.front(), false};
}

int64_t guess_speakers(std::vector<FoundClip>& clips, const SpeakerRule& rule) {
  std::unordered_map<std::string, int64_t> counts;
  std::vector<SpeakerRule::Guess> guesses(clips.size());
  for (size_t i = 0; i < clips.size(); ++i) {
    if (!clips[i].clip.speaker.empty()) continue;
    guesses[i] = rule.speaker_of(clips[i].clip.id);
    if (!guesses[i].name.empty()) ++counts[guesses[i].name];
  }
  const bool all_repeat =
      std::all_of(counts.begin(), counts.end(), [](const auto& count) { return count.second > 1; });
  std::unordered_set<std::string> named;
  for (size_t i = 0; i < clips.size(); ++i) {
    const auto& [name, marked] = guesses[i];
    if (name.empty() || counts[name] < 2 || !(marked || all_repeat)) continue;
    clips[i].clip.speaker = name;
    named.insert(name);
  }
  return static_cast<int64_t>(named.size());
}

}  // namespace tandem
