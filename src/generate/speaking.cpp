#include "generate/speaking.h"

#include <ATen/ATen.h>

#include <utility>

namespace tandem {

void Speaking::conclude() {
  if (over) return;
  over = true;
  result.seconds = seconds_since(submitted);
  if (result.latents.defined()) result.latents = result.latents.cpu();
  promise.set_value(std::move(result));
}

void Speaking::fail(std::exception_ptr error) {
  if (over) return;
  over = true;
  promise.set_exception(std::move(error));
}

}  // namespace tandem
