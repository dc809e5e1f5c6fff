// A file of named tensors, safetensors or PyTorch's .pth, opened without loading it: its entries
// are listed from the header alone, and each tensor is read when it is asked for. Nothing in a file
// is ever executed; every length is checked before memory is taken.
//
// Names in a .pth are the path of dictionary keys (and places in lists) joined by `/`:
// `model/gpt.final_norm.weight`. A file that is one bare tensor calls it `tensor`.
// May be used from one thread at a time.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tandem {

class StoredBytes;

struct TensorEntry {
  std::string name;
  at::ScalarType type = at::kFloat;
  std::vector<int64_t> shape;
  int64_t elements() const;
  int64_t bytes() const;
};

class TensorFile {
 public:
  virtual ~TensorFile() = default;
  const std::filesystem::path& path() const { return path_; }
  const std::string& format() const { return format_; }  // "safetensors", "pth zip", "pth legacy"
  const std::vector<TensorEntry>& entries() const { return entries_; }  // in the file's order
  // What else the file says: safetensors' metadata; of a .pth its numbers, texts and the names of
  // objects that were left unread, by path.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  bool has(const std::string& name) const { return places_.count(name) != 0; }
  // Contiguous, on the CPU, in the file's own element type. Throws Error(internal) for a name that
  // is not listed.
  at::Tensor read(const std::string& name) const;

 protected:
  virtual at::Tensor read_entry(size_t place) const = 0;
  void index_names();  // once entries_ stand

  std::filesystem::path path_;
  std::string format_;
  std::vector<TensorEntry> entries_;
  std::map<std::string, std::string> metadata_;

 private:
  std::unordered_map<std::string, size_t> places_;
};

// By the file's content. Throws Error(io) when it cannot be read, Error(corrupt) when it is neither
// format or is damaged.
std::unique_ptr<TensorFile> open_tensor_file(const std::filesystem::path& path);
// The same of bytes in memory, which must outlive it.
std::unique_ptr<TensorFile> open_tensor_bytes(std::string_view bytes, const std::string& name);

// The formats one by one, for open_tensor_file.
std::unique_ptr<TensorFile> open_safetensors(std::unique_ptr<StoredBytes> bytes);
std::unique_ptr<TensorFile> open_pth(std::unique_ptr<StoredBytes> bytes);

}  // namespace tandem
