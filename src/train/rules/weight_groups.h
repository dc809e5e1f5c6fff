// Which weights of XTTS's GPT decay: matrices do, with the perceiver's latents and the scale of its
// last norm; biases, the other norms, embeddings and positions do not. Coqui's grouping
// (`optimizer_wd_only_on_weights`).
#pragma once

#include <string_view>

namespace tandem {

// By the name in model files: `gpt.gpt.h.0.attn.c_attn.weight`, with or without the first `gpt.`.
bool decays(std::string_view name);

}  // namespace tandem
