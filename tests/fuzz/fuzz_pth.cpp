// Any bytes as a .pth file, listed and every tensor read, and as the pickle of one, which mutations
// of a zip archive seldom reach; only Error(corrupt) may come out.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "checkpoint/byte_source.h"
#include "checkpoint/pth_tensors.h"
#include "checkpoint/tensor_file.h"
#include "tandem/error.h"

namespace {

void read_file(std::string_view bytes) {
  const auto file = tandem::open_pth(tandem::bytes_in_memory(bytes, "fuzzed"));
  int64_t elements = 0;
  for (const tandem::TensorEntry& entry : file->entries()) {
    elements += entry.elements();
    if (elements > 1 << 20) break;  // views may repeat what they show; enough was read
    file->read(entry.name);
  }
}

void read_pickle(std::string_view bytes) {
  try {
    const tandem::Pickle pickle(bytes, "fuzzed");
    tandem::list_storages(pickle, "fuzzed");
    tandem::list_tensors(pickle, bytes.size(), "fuzzed");
  } catch (const tandem::Pickle::Ended&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const auto read : {read_file, read_pickle}) {
    try {
      read(bytes);
    } catch (const tandem::Error& error) {
      if (error.kind() != tandem::ErrorKind::corrupt) std::abort();
    }
  }
  return 0;
}
