#include <ATen/ATen.h>

#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_header.h"
#include "checkpoint/tensor_file.h"

namespace tandem {
namespace {

at::Tensor read_tensor(const StoredBytes& bytes, const SafetensorsHeader& header,
                       const SafetensorsEntry& entry) {
  at::Tensor tensor = at::empty(entry.shape, entry.type);
  if (entry.type == at::kBool) {  // any byte but 0 is true; a bool of C++ may hold 0 and 1 only
    tensor = at::empty(entry.shape, at::kByte);
  }
  bytes.read(header.data_offset + entry.begin, tensor.data_ptr(), entry.end - entry.begin);
  return entry.type == at::kBool ? tensor.ne(0) : tensor;
}

class LazyFile final : public TensorFile {
 public:
  explicit LazyFile(std::unique_ptr<StoredBytes> bytes)
      : bytes_(std::move(bytes)), header_(read_safetensors_header(*bytes_)) {
    path_ = bytes_->name();
    format_ = "safetensors";
    metadata_ = header_.metadata;
    for (const SafetensorsEntry& entry : header_.entries)
      entries_.push_back({entry.name, entry.type, entry.shape});
    index_names();
  }

 private:
  at::Tensor read_entry(size_t place) const override {
    return read_tensor(*bytes_, header_, header_.entries[place]);
  }
  std::unique_ptr<StoredBytes> bytes_;
  SafetensorsHeader header_;
};

SafetensorsFile read_all(const StoredBytes& bytes) {
  const SafetensorsHeader header = read_safetensors_header(bytes);
  SafetensorsFile file;
  file.metadata = header.metadata;
  for (const SafetensorsEntry& entry : header.entries)
    file.tensors.emplace(entry.name, read_tensor(bytes, header, entry));
  return file;
}

}  // namespace

SafetensorsFile parse_safetensors(std::string_view bytes, const std::string& name_for_errors) {
  return read_all(*bytes_in_memory(bytes, name_for_errors));
}

SafetensorsFile read_safetensors(const std::filesystem::path& path) {
  return read_all(*open_bytes(path));
}

std::unique_ptr<TensorFile> open_safetensors(std::unique_ptr<StoredBytes> bytes) {
  return std::make_unique<LazyFile>(std::move(bytes));
}

}  // namespace tandem
