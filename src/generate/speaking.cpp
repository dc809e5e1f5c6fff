#include "generate/speaking.h"

#include <utility>

namespace tandem {

void Speaking::conclude() {
  if (over) return;
  over = true;
  result.seconds = seconds_since(submitted);
  promise.set_value(std::move(result));
}

void Speaking::fail(std::exception_ptr error) {
  if (over) return;
  over = true;
  promise.set_exception(std::move(error));
}

}  // namespace tandem
