#include "config/overrides.h"

#include <fmt/format.h>

#include "config/groups.h"
#include "config/names.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {

namespace {
[[noreturn]] void refuse(const std::string& word, const char* form) {
  throw Error(ErrorKind::config,
              fmt::format("`{}` is no setting: expected `{}`", shown(word), form));
}
}  // namespace

Override parse_override(const std::string& word) {
  Override out;
  out.place = shown(word);
  const size_t equals = word.find('=');
  if (word.starts_with("~")) {
    out.kind = Override::Kind::remove;
    out.name = trim(std::string_view(word).substr(1));
    if (equals != std::string::npos || out.name.empty()) refuse(word, "~key");
    return out;
  }
  if (equals == std::string::npos) refuse(word, "key=value");
  const size_t pluses = word.starts_with("++") ? 2 : word.starts_with("+") ? 1 : 0;
  out.name = trim(std::string_view(word).substr(pluses, equals - pluses));
  out.value = trim(std::string_view(word).substr(equals + 1));
  if (out.name.empty()) refuse(word, "key=value");
  if (out.name == preset_group || is_section(out.name)) out.kind = Override::Kind::choose;
  return out;
}

}  // namespace tandem
