#include "generate/clip_names.h"

#include <fmt/format.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "data/corpus/text_table.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Marks that end lines or turn the direction of what is shown, as UTF-8.
bool is_invisible(std::string_view sequence) {
  if (sequence.size() == 2) {  // C1 controls: U+0080 to U+009F
    return sequence[0] == '\xC2' && static_cast<unsigned char>(sequence[1]) < 0xA0;
  }
  if (sequence.size() != 3 || !sequence.starts_with("\xE2")) return sequence == "\xEF\xBB\xBF";
  const auto last = static_cast<unsigned char>(sequence[2]);
  const bool lines_and_turns = sequence[1] == '\x80' && last >= 0xA8 && last <= 0xAE;
  const bool marks = sequence[1] == '\x80' && (last == 0x8E || last == 0x8F);
  const bool isolates = sequence[1] == '\x81' && last >= 0xA6 && last <= 0xA9;
  return lines_and_turns || marks || isolates;
}

bool is_refused(char c) {
  constexpr std::string_view refused = "/\\:*?\"<>|";
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f ||
         refused.find(c) != std::string_view::npos;
}

// `CON`, `lpt1.txt`: Windows opens a device whatever the ending.
bool is_windows_device(std::string_view name) {
  static const std::set<std::string, std::less<>> devices = {"con", "prn",    "aux",
                                                             "nul", "conin$", "conout$"};
  const std::string stem = trim(lower(name.substr(0, name.find('.'))));
  if (devices.contains(stem)) return true;
  if (!stem.starts_with("com") && !stem.starts_with("lpt")) return false;
  static const std::set<std::string, std::less<>> superscripts = {"¹", "²", "³"};
  const std::string number = stem.substr(3);
  const bool digit = number.size() == 1 && number[0] >= '0' && number[0] <= '9';
  return digit || superscripts.contains(number);
}

// Cut between characters.
std::string shortened(std::string name, size_t longest) {
  if (name.size() <= longest) return name;
  size_t end = longest;
  while (end > 0 && is_continuation(name[end])) --end;
  return name.substr(0, end);
}

// Equal for names that some disk takes for one: other case, composed otherwise.
std::string disk_key(const std::string& name) {
  if (std::ranges::all_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) {
    return lower(name);
  }
  static const icu::Normalizer2* const folder = [] {
    UErrorCode status = U_ZERO_ERROR;
    return icu::Normalizer2::getNFKCCasefoldInstance(status);
  }();
  UErrorCode status = folder ? U_ZERO_ERROR : U_MISSING_RESOURCE_ERROR;
  std::string key;
  if (folder) {
    icu::StringByteSink<std::string> sink(&key);
    folder->normalizeUTF8(0, icu::StringPiece(name.data(), static_cast<int32_t>(name.size())), sink,
                          nullptr, status);
  }
  if (U_FAILURE(status)) {
    throw Error(ErrorKind::internal,
                fmt::format("ICU cannot fold the case of `{}`: {}", name, u_errorName(status)));
  }
  return key;
}

}  // namespace

std::string safe_clip_name(std::string_view id) {
  if (id.empty()) return "";
  if (find_bad_utf8(id) != std::string_view::npos) {
    throw Error(ErrorKind::data, "an id is not UTF-8; expected text to name a file after");
  }
  std::string name;
  for (size_t at = 0; at < id.size();) {
    size_t end = at + 1;
    while (end < id.size() && is_continuation(id[end])) ++end;
    const std::string_view sequence = id.substr(at, end - at);
    const bool plain = sequence.size() == 1 ? !is_refused(id[at]) : !is_invisible(sequence);
    name += plain ? sequence : "_";
    at = end;
  }
  if (name.starts_with('-') || name.starts_with('.') || name.starts_with(' ') ||
      name.starts_with('~') || is_windows_device(name)) {
    name = "_" + name;
  }
  name = shortened(std::move(name), longest_clip_name);
  // Windows drops them, and two names become one.
  for (auto c = name.rbegin(); c != name.rend() && (*c == '.' || *c == ' '); ++c) *c = '_';
  return name;
}

std::vector<std::string> clip_names(const std::vector<std::string>& ids) {
  std::vector<std::string> names;
  std::unordered_set<std::string> taken;
  std::vector<bool> settled;
  names.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    names.push_back(ids[i].empty() ? "" : safe_clip_name(ids[i]));
    settled.push_back(!ids[i].empty() && taken.insert(disk_key(names[i])).second);
  }
  std::unordered_map<std::string, int64_t> next_turn;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (settled[i]) continue;
    const bool numbered = ids[i].empty();
    const std::string wanted = numbered ? fmt::format("{:06}", i + 1) : names[i];
    const std::string key = disk_key(wanted);
    int64_t& turn = next_turn.try_emplace(key, 2).first->second;
    std::string name = wanted;
    if (!numbered || !taken.insert(key).second) {
      do {
        name = fmt::format("{}_{}", wanted, turn++);
      } while (!taken.insert(disk_key(name)).second);
    }
    names[i] = std::move(name);
  }
  return names;
}

}  // namespace tandem
