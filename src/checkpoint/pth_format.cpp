#include "checkpoint/pth_format.h"

#include <fmt/format.h>

#include "tandem/error.h"

namespace tandem {

bool starts_like_zip(std::string_view first_bytes) { return first_bytes.starts_with("PK\x03\x04"); }

bool starts_like_pth(std::string_view first_bytes) {
  // PROTO 2 to 5. As the length of a safetensors header its first 8 bytes would be far too large,
  // but for pickles shorter than that.
  const bool pickle = first_bytes.size() >= 2 && first_bytes[0] == '\x80' && first_bytes[1] >= 2 &&
                      first_bytes[1] <= 5;
  const bool safetensors =
      first_bytes.size() >= 9 && first_bytes.substr(4, 5) == std::string_view("\0\0\0\0{", 5);
  return starts_like_zip(first_bytes) || (pickle && !safetensors);
}

void refuse_pth(const std::string& name, const std::string& why) {
  throw Error(ErrorKind::corrupt, fmt::format("`{}` is not a valid .pth file: {}", name, why))
      .hint("the file is damaged or hostile; nothing in it was executed");
}

std::string quotable(std::string_view text) {
  constexpr size_t longest = 80;
  std::string clean(text.substr(0, longest));
  for (char& letter : clean) {
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f || letter == '`' ||
        static_cast<unsigned char>(letter) >= 0x80)
      letter = '?';
  }
  return text.size() > longest ? clean + "..." : clean;
}

}  // namespace tandem
