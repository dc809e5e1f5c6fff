#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_types.h"
#include "tandem/error.h"

namespace tandem {
namespace {

std::string type_name(at::ScalarType type) {
  for (const SafetensorsType& entry : safetensors_types) {
    if (entry.type == type) return std::string(entry.name);
  }
  throw Error(ErrorKind::internal,
              fmt::format("safetensors has no name for the type {}", c10::toString(type)));
}

}  // namespace

std::string format_safetensors(const NamedTensors& tensors, const Metadata& metadata) {
  NamedTensors sorted = tensors;
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    const auto wide_a = a.second.element_size(), wide_b = b.second.element_size();
    return wide_a != wide_b ? wide_a > wide_b : a.first < b.first;
  });
  nlohmann::ordered_json header;
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (auto& [name, tensor] : sorted) {
    tensor = tensor.detach().to(at::kCPU).contiguous();
    header[name] = {{"dtype", type_name(tensor.scalar_type())},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {offset, offset + tensor.nbytes()}}};
    offset += tensor.nbytes();
  }
  std::string text = header.is_null() ? "{}" : header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  std::string file;
  file.reserve(8 + text.size() + offset);
  file.append(reinterpret_cast<const char*>(&length), 8);
  file += text;
  for (const auto& [name, tensor] : sorted) {
    file.append(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
  }
  return file;
}

}  // namespace tandem
