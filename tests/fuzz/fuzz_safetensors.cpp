// Any bytes as a safetensors file: whole, and tensor by tensor; only Error(corrupt) may come out,
// and from both or neither.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "checkpoint/byte_source.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_file.h"
#include "tandem/error.h"

namespace {

template <class Action>
bool accepted(const Action& action) {
  try {
    action();
  } catch (const tandem::Error& error) {
    if (error.kind() != tandem::ErrorKind::corrupt) std::abort();
    return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const bool whole = accepted([&] { tandem::parse_safetensors(bytes, "fuzzed"); });
  const bool parts = accepted([&] {
    const auto file = tandem::open_safetensors(tandem::bytes_in_memory(bytes, "fuzzed"));
    for (const tandem::TensorEntry& entry : file->entries()) file->read(entry.name);
  });
  if (whole != parts) std::abort();
  return 0;
}
