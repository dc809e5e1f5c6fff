// A ByteSource as C libraries ask for one: a place that moves, and a callback that reads. An
// exception must not pass through C code: it is kept, the read comes out short, and whoever called
// the library rethrows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "audio/file/byte_source.h"

namespace tandem {

struct SourceStream {
  std::shared_ptr<ByteSource> source;
  int64_t place = 0;
  std::exception_ptr failure;

  void rethrow() const {
    if (failure) std::rethrow_exception(failure);
  }
};

// Room for decoded samples, kept for the next call of this thread.
inline std::span<float> block_of_this_thread() {
  thread_local std::vector<float> block(32 << 10);
  return block;
}

}  // namespace tandem
