// The safetensors format: an 8-byte length, a JSON header, then the bytes of the tensors. The
// reader trusts nothing: every length is checked before memory is taken, and the offsets must tile
// the file exactly, as the reference implementation demands.
#pragma once

#include <ATen/core/TensorBody.h>

#include <filesystem>
#include <map>
#include <string>

#include "nn/parameters.h"

namespace tandem {

using Metadata = std::map<std::string, std::string>;

struct SafetensorsFile {
  std::map<std::string, at::Tensor> tensors;  // on the CPU, own memory
  Metadata metadata;
};

// Throws Error(io) when it cannot be read, Error(corrupt) when it is not a well-formed file.
SafetensorsFile read_safetensors(const std::filesystem::path& path);
SafetensorsFile parse_safetensors(std::string_view bytes, const std::string& name_for_errors);

// The bytes of such a file. Tensors may live on any device. Aligned as the reference writer does:
// larger element types first, names in order, the header padded to 8 bytes.
std::string format_safetensors(const NamedTensors& tensors, const Metadata& metadata);

}  // namespace tandem
