#include "checkpoint/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/byte_source.h"
#include "checkpoint/pth_format.h"
#include "tandem/error.h"

namespace tandem {
namespace {

std::unique_ptr<TensorFile> open_source(std::unique_ptr<StoredBytes> bytes) {
  const std::string start = bytes->read(0, std::min<uint64_t>(bytes->size(), 16));
  if (starts_like_pth(start)) return open_pth(std::move(bytes));
  // The first byte of a safetensors header follows its length.
  if (start.size() >= 9 && start[8] == '{') return open_safetensors(std::move(bytes));
  throw Error(ErrorKind::corrupt,
              fmt::format("`{}` is neither a safetensors nor a .pth file", bytes->name()))
      .hint(
          "the file is damaged or something else; expected tensors as PyTorch or safetensors "
          "write them");
}

}  // namespace

int64_t TensorEntry::elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

int64_t TensorEntry::bytes() const {
  return elements() * static_cast<int64_t>(at::elementSize(type));
}

at::Tensor TensorFile::read(const std::string& name) const {
  const auto found = places_.find(name);
  if (found == places_.end()) {
    throw Error(ErrorKind::internal,
                fmt::format("`{}` lists no tensor `{}`", path_.string(), name));
  }
  return read_entry(found->second);
}

void TensorFile::index_names() {
  for (size_t i = 0; i < entries_.size(); ++i) places_.emplace(entries_[i].name, i);
}

std::unique_ptr<TensorFile> open_tensor_file(const std::filesystem::path& path) {
  return open_source(open_bytes(path));
}

std::unique_ptr<TensorFile> open_tensor_bytes(std::string_view bytes, const std::string& name) {
  return open_source(bytes_in_memory(bytes, name));
}

}  // namespace tandem
