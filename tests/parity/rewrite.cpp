// For tests/parity: reads a safetensors file with Tandem and writes it again.
//   parity_rewrite IN OUT
#include <cstdio>

#include "checkpoint/safetensors.h"
#include "tandem/error.h"
#include "util/atomic_file.h"

int main(int count, char** words) {
  if (count != 3) return 2;
  try {
    const tandem::SafetensorsFile file = tandem::read_safetensors(words[1]);
    const tandem::NamedTensors tensors(file.tensors.begin(), file.tensors.end());
    tandem::write_file_atomically(words[2], tandem::format_safetensors(tensors, file.metadata));
  } catch (const tandem::Error& error) {
    std::puts(error.what());
    return tandem::exit_code(error.kind());
  }
  return 0;
}
