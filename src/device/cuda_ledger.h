// The CUDA half of install_ledgers. Without CUDA in the build it does nothing.
#pragma once

namespace tandem {

void install_cuda_ledger();

}  // namespace tandem
