#include "nn/new_kernels.h"

#include <cstdlib>
#include <string>

namespace tandem {

bool new_kernel(std::string_view name) {
  const char* text = std::getenv("TANDEM_NEW_KERNELS");
  if (!text) return false;
  const std::string asked = "," + std::string(text) + ",";
  return asked == ",1," || asked.find("," + std::string(name) + ",") != std::string::npos;
}

}  // namespace tandem
