#include "train/rules/weight_groups.h"

namespace tandem {

bool decays(std::string_view name) {
  const size_t dot = name.rfind('.');
  const std::string_view kind = dot == std::string_view::npos ? name : name.substr(dot + 1);
  if (kind == "bias") return false;
  if (kind != "weight") return true;  // latents, gamma, low-rank additions
  const std::string_view layer = name.substr(0, dot);
  const std::string_view own = layer.substr(layer.rfind('.') + 1);  // npos + 1 is 0
  const bool norm = own == "norm" || own == "final_norm" || own.starts_with("ln_");
  return !norm && own != "emb" && !own.ends_with("_embedding");
}

}  // namespace tandem
