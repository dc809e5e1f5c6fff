// Any bytes as a tokenizer file and a text: read, encode, decode; only tandem::Error may come out.
// The input is the JSON, a zero byte, the text; without a zero byte the text is the JSON itself.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tandem/error.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = input.find('\0');
  const std::string_view text = cut == input.npos ? input : input.substr(cut + 1);
  try {
    const auto tokenizer = tandem::parse_tokenizer(input.substr(0, cut), "fuzzed");
    tokenizer->decode(tokenizer->encode(text));
  } catch (const tandem::Error&) {
  }
  return 0;
}
