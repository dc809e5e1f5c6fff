#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>

namespace tandem {

struct SafetensorsType {
  std::string_view name;
  at::ScalarType type;
};
inline constexpr SafetensorsType safetensors_types[] = {
    {"BOOL", at::kBool}, {"U8", at::kByte},    {"I8", at::kChar},  {"I16", at::kShort},
    {"I32", at::kInt},   {"I64", at::kLong},   {"F16", at::kHalf}, {"BF16", at::kBFloat16},
    {"F32", at::kFloat}, {"F64", at::kDouble},
};

inline std::optional<at::ScalarType> safetensors_type(std::string_view name) {
  for (const SafetensorsType& entry : safetensors_types) {
    if (entry.name == name) return entry.type;
  }
  return std::nullopt;
}

}  // namespace tandem
