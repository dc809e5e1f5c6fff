#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>

#include "tandem/error.h"
#include "text/clean.h"
#include "text/clean_characters.h"

namespace tandem {
namespace {

// Asked for once: ICU's own lock around it lies in a library the thread sanitizer cannot see into.
const icu::Normalizer2* composer_of_icu() {
  static const icu::Normalizer2* const composer = [] {
    UErrorCode status = U_ZERO_ERROR;
    return icu::Normalizer2::getNFCInstance(status);
  }();
  return composer;
}

}  // namespace

std::string to_nfc(std::string_view text) {
  decode_utf8(text);  // ICU would replace wrong bytes
  const icu::Normalizer2* composer = composer_of_icu();
  UErrorCode status = composer ? U_ZERO_ERROR : U_MISSING_RESOURCE_ERROR;
  std::string composed;
  if (composer) {
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
