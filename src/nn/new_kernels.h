// Ways to compute that give what older ones give, but faster, and were not yet seen on every kind
// of GPU they are for. They are taken where TANDEM_NEW_KERNELS asks for them: `1` for all, or names
// separated by commas.
#pragma once

#include <string_view>

namespace tandem {

// `map_distance`, `leaky_cast`, `decoder_capture`, `decoder_products`.
bool new_kernel(std::string_view name);

}  // namespace tandem
