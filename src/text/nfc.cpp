#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>

#include "tandem/error.h"
#include "text/clean.h"
#include "text/clean_characters.h"

namespace tandem {

std::string to_nfc(std::string_view text) {
  decode_utf8(text);  // ICU would replace wrong bytes
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* composer = icu::Normalizer2::getNFCInstance(status);
  std::string composed;
  if (U_SUCCESS(status)) {
    icu::StringByteSink<std::string> sink(&composed, static_cast<int32_t>(text.size()));
    composer->normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())),
                            sink, nullptr, status);
  }
  if (U_FAILURE(status)) {
    throw Error(ErrorKind::internal,
                std::string("ICU cannot compose text: ") + u_errorName(status) + ".");
  }
  return composed;
}

}  // namespace tandem
