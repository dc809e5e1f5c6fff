#include "checkpoint/pth_tensors.h"

namespace tandem {
namespace {

struct NamedType {
  std::string_view storage, dtype;
  at::ScalarType type;
};
constexpr NamedType types[] = {
    {"FloatStorage", "float32", at::kFloat},
    {"DoubleStorage", "float64", at::kDouble},
    {"HalfStorage", "float16", at::kHalf},
    {"BFloat16Storage", "bfloat16", at::kBFloat16},
    {"LongStorage", "int64", at::kLong},
    {"IntStorage", "int32", at::kInt},
    {"ShortStorage", "int16", at::kShort},
    {"CharStorage", "int8", at::kChar},
    {"ByteStorage", "uint8", at::kByte},
    {"BoolStorage", "bool", at::kBool},
    {"UntypedStorage", "", at::kByte},
    {"ComplexFloatStorage", "complex64", at::kComplexFloat},
    {"ComplexDoubleStorage", "complex128", at::kComplexDouble},
    {"", "uint16", at::kUInt16},
    {"", "uint32", at::kUInt32},
    {"", "uint64", at::kUInt64},
    {"", "float8_e5m2", at::kFloat8_e5m2},
    {"", "float8_e4m3fn", at::kFloat8_e4m3fn},
};

}  // namespace

std::optional<at::ScalarType> storage_type(std::string_view class_name) {
  const size_t dot = class_name.rfind('.');
  if (dot == class_name.npos || !class_name.starts_with("torch.")) return std::nullopt;
  const std::string_view last = class_name.substr(dot + 1);
  for (const NamedType& entry : types) {
    if (!entry.storage.empty() && entry.storage == last) return entry.type;
  }
  return std::nullopt;
}

std::string_view storage_name(at::ScalarType type) {
  for (const NamedType& entry : types) {
    if (entry.type == type && !entry.dtype.empty()) return entry.storage;
  }
  return {};
}

std::optional<at::ScalarType> dtype_named(std::string_view name) {
  for (const NamedType& entry : types) {
    if (!entry.dtype.empty() && name == "torch." + std::string(entry.dtype)) return entry.type;
  }
  return std::nullopt;
}

}  // namespace tandem
