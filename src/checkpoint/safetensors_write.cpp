#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "checkpoint/file_draft.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_types.h"
#include "checkpoint/tensor_writing.h"
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

using Entries = std::vector<std::pair<std::string, TensorToWrite>>;

// Larger element types first, names in order.
void sort_entries(Entries& entries) {
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    const auto wide_a = at::elementSize(a.second.type), wide_b = at::elementSize(b.second.type);
    return wide_a != wide_b ? wide_a > wide_b : a.first < b.first;
  });
}

// The length and the header, padded to 8 bytes.
std::string format_header(const Entries& entries, const Metadata& metadata) {
  // Built as text: entries stand in the order of their bytes.
  std::string text = "{";
  const auto add = [&](const std::string& name, const nlohmann::ordered_json& value) {
    if (text.size() > 1) text += ",";
    text += nlohmann::json(name).dump() + ":" + value.dump();
  };
  if (!metadata.empty()) add("__metadata__", metadata);
  uint64_t offset = 0;
  for (const auto& [name, tensor] : entries) {
    add(name, {{"dtype", type_name(tensor.type)},
               {"shape", tensor.shape},
               {"data_offsets", {offset, offset + tensor.bytes()}}});
    offset += tensor.bytes();
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + text;
}

std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace

TensorToWrite TensorToWrite::of(const at::Tensor& tensor) {
  return {.type = tensor.scalar_type(), .shape = tensor.sizes().vec(), .make = [tensor] {
            return tensor;
          }};
}

uint64_t TensorToWrite::bytes() const {
  uint64_t size = at::elementSize(type);
  for (const int64_t extent : shape) size *= static_cast<uint64_t>(extent);
  return size;
}

at::Tensor TensorToWrite::made() const {
  const at::Tensor tensor = make().detach().to(at::kCPU).contiguous();
  if (tensor.scalar_type() != type || tensor.sizes() != at::IntArrayRef(shape))
    throw Error(ErrorKind::internal, "a tensor is not what was announced for the file");
  return tensor;
}

std::string format_safetensors(const NamedTensors& tensors, const Metadata& metadata) {
  Entries entries;
  for (const auto& [name, tensor] : tensors) entries.emplace_back(name, TensorToWrite::of(tensor));
  sort_entries(entries);
  std::string file = format_header(entries, metadata);
  uint64_t size = file.size();
  for (const auto& [name, tensor] : entries) size += tensor.bytes();
  file.reserve(size);
  for (const auto& [name, tensor] : entries) file += bytes_of(tensor.made());
  return file;
}

void write_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, TensorToWrite>& tensors,
                       const Metadata& metadata, const OnBytesWritten& on_written) {
  Entries entries(tensors.begin(), tensors.end());
  sort_entries(entries);
  FileDraft draft(path);
  draft.write(format_header(entries, metadata));
  for (const auto& [name, tensor] : entries) {
    const at::Tensor made = tensor.made();
    draft.write(bytes_of(made));
    if (on_written) on_written(made.nbytes());
  }
  draft.commit();
}

void write_safetensors(const std::filesystem::path& path, const NamedTensors& list) {
  std::map<std::string, TensorToWrite> tensors;
  for (const auto& [name, tensor] : list) tensors.emplace(name, TensorToWrite::of(tensor));
  write_safetensors(path, tensors, {});
}

}  // namespace tandem
