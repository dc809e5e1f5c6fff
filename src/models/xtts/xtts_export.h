// An XTTS folder written anew, Coqui's or ours, from names and tensors alone; no model is built.
// Tensors are copied one at a time. Ours holds folded weights; Coqui's holds them as weight norm,
// whose scale is then the norm itself, so that both ways give the same weights up to rounding.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/tensor_writing.h"
#include "models/xtts/xtts_folder.h"

namespace tandem {

enum class XttsTarget { coqui, tandem };

struct XttsExportOptions {
  XttsTarget target = XttsTarget::tandem;
  // Of matrices and kernels; biases, norms, statistics and tables keep theirs. None: as it is.
  std::optional<at::ScalarType> precision = {};
  std::function<void(uint64_t done, uint64_t total)> on_progress = {};  // bytes of tensors
};

struct XttsExported {
  struct File {
    std::string name;
    uint64_t tensors = 0, bytes = 0;
  };
  std::vector<File> files;
  std::vector<std::string> left_out;  // names of tensors that neither form needs
};

// Fills `out`, an empty folder. Throws Error(io), Error(corrupt), and Error(data) for numbers that
// do not fit the precision.
XttsExported export_xtts(const XttsFolder& from, const std::filesystem::path& out,
                         const XttsExportOptions& options = {});

using TensorsToWrite = std::map<std::string, TensorToWrite>;

// The model's tensors under the names of the target. `file` must outlive what is returned.
TensorsToWrite xtts_tensors(const TensorFile& file, const std::string& prefix, XttsTarget target,
                            std::vector<std::string>* left_out = nullptr);
// The same with matrices and kernels of another type.
TensorsToWrite in_precision(const TensorsToWrite& tensors, at::ScalarType precision);

}  // namespace tandem
