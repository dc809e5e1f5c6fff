// Copies keys and values of the first positions of sequences between their places and slots where
// they are kept: those of all layers and sequences in one kernel.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tandem {

enum class PrefixWay { to_places, to_slots };

struct RowPrefix {
  int copies = 1;
  int caches = 2;    // of all layers: keys and values of the first, of the second, …
  int heads = 1;     // H
  int pad = 64;      // elements of one head at one position, 2 bytes each
  int capacity = 0;  // C, positions of a place
  int positions = 0;
  const int64_t* cache = nullptr;  // [caches] addresses of [P, H, C, pad]
  void* kept = nullptr;            // [slots, caches, H, positions, pad]
  const int32_t* place = nullptr;  // [copies]
  const int32_t* slot = nullptr;   // [copies]; copies to slots name each once
  PrefixWay way = PrefixWay::to_places;
};
void launch_row_prefix(const RowPrefix& call, cudaStream_t stream);

}  // namespace tandem
