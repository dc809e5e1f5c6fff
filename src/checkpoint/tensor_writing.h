// Files of tensors written one tensor at a time, so that a model of gigabytes needs the memory of
// its largest tensor. A file is either whole or not there.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "nn/parameters.h"

namespace tandem {

struct TensorToWrite {
  at::ScalarType type = at::kFloat;
  std::vector<int64_t> shape;
  // Called once, when its bytes are due. Any device; must have the type and shape above.
  std::function<at::Tensor()> make;

  static TensorToWrite of(const at::Tensor& tensor);
  uint64_t bytes() const;
  at::Tensor made() const;  // checked, on the CPU, contiguous
};

using OnBytesWritten = std::function<void(uint64_t bytes)>;  // since the call before

// A safetensors file, laid out as format_safetensors does. Throws Error(io).
void write_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, TensorToWrite>& tensors,
                       const std::map<std::string, std::string>& metadata,
                       const OnBytesWritten& on_written = {});

// The same of tensors at hand, without metadata.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors);

// One value of a .pth. `path` holds the keys of the dictionaries that lead to it; dictionaries are
// written in the order in which their first values come. One item with an empty path is a bare
// value.
struct PthItem {
  std::vector<std::string> path;
  std::variant<std::monostate, bool, int64_t, double, std::string, TensorToWrite> value;
};

// A .pth as torch.save writes it, a zip archive; torch.load takes it with weights_only. Throws
// Error(io).
void write_pth(const std::filesystem::path& path, const std::vector<PthItem>& items,
               const OnBytesWritten& on_written = {});

}  // namespace tandem
