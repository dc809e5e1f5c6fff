// LibTorch's own exceptions in our terms: an out-of-memory of CUDA is Error(memory), its back trace
// is left out of the sentence.
#pragma once

#include <string>

#include "tandem/error.h"

namespace tandem {

Explanation explain_with_torch(const std::exception& error);

struct TorchVersions {
  std::string torch;  // "2.11.0"
  std::string cuda;   // that this LibTorch was built for, "13.0"; empty without CUDA
};
TorchVersions torch_versions();

}  // namespace tandem
