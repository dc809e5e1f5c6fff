// Which row is which token, from the lengths: one block for the sequences' places, then a thread a
// place and a slot.
#include <c10/cuda/CUDAException.h>

#include "nn/gpt_step/gpt_kernels.h"

namespace tandem {
namespace {

constexpr int stop_places = 3;  // behind a clip's codes, as inputs
constexpr int stop_targets_of_codes = 4;

struct RowPlaces {
  int text, audio;  // places of the segments; 0: the row is empty
  __device__ int all(const PackCall& call) const {
    return text + audio == 0 ? 0 : call.latents + text + audio;
  }
};

__device__ RowPlaces row_places(const PackCall& call, int row) {
  const int text = static_cast<int>(
      min(max(call.text_lengths[row], int64_t{0}), static_cast<int64_t>(call.texts)));
  const int codes = static_cast<int>(
      min(max(call.code_lengths[row], int64_t{0}), static_cast<int64_t>(call.sounds)));
  if (text == 0 && codes == 0) return {0, 0};
  return {text + 1 + (call.reads_stop ? 1 : 0), codes + 1 + stop_places};
}

// Sequences that do not fit are cut, so that nothing is read or written beyond the buffers.
__global__ void find_starts(const PackCall call) {
  __shared__ int lengths[1024];
  __shared__ int end, misfits;
  if (threadIdx.x == 0) end = 0, misfits = 0;
  for (int first = 0; first < call.rows; first += blockDim.x) {
    const int row = first + static_cast<int>(threadIdx.x);
    __syncthreads();
    if (row < call.rows) lengths[threadIdx.x] = row_places(call, row).all(call);
    __syncthreads();
    if (threadIdx.x != 0) continue;
    for (int i = 0; i < min(static_cast<int>(blockDim.x), call.rows - first); ++i) {
      const int length = min(min(lengths[i], call.longest), call.places - end);
      misfits += length < lengths[i];
      call.to.starts[first + i] = end;
      end += length;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i <= call.rows + 1; i += blockDim.x)
    call.to.starts[call.rows + i] = static_cast<int>(
        min(end + static_cast<int64_t>(i) * call.longest, static_cast<int64_t>(call.places)));
  if (threadIdx.x == 0) *call.to.misfits = misfits;
}

// Wrong ids read a wrong row, not another's memory.
__device__ int checked(int64_t id, int tokens) {
  return static_cast<int>(min(max(id, int64_t{0}), static_cast<int64_t>(tokens - 1)));
}

__global__ void describe_places(const PackCall call) {
  const int place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= call.places) return;
  int low = 0, high = call.rows;  // the last row that starts at or before it
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (call.to.starts[middle] <= place ? low : high) = middle;
  }
  const int row = low;
  int token = -1, position = 0, slot = -1;
  if (place < call.to.starts[call.rows]) {
    const RowPlaces places = row_places(call, row);
    const int at = place - call.to.starts[row];
    const int text_at = at - call.latents, audio_at = text_at - places.text;
    if (text_at < 0) {
      token = -2 - (row * call.latents + at);
    } else if (audio_at < 0) {
      const int written = places.text - 1 - (call.reads_stop ? 1 : 0);
      token = text_at == 0 ? call.start_text
              : text_at <= written
                  ? checked(call.text[static_cast<int64_t>(row) * call.texts + text_at - 1],
                            call.text_tokens)
                  : call.stop_text;
      position = min(text_at, call.text_positions - 1);
      if (text_at <= written) slot = row * (call.texts + 1) + text_at;
    } else {
      const int codes = places.audio - 1 - stop_places;
      token =
          call.text_tokens +
          (audio_at == 0 ? call.start_audio
           : audio_at <= codes
               ? checked(call.read_codes[static_cast<int64_t>(row) * call.sounds + audio_at - 1],
                         call.audio_tokens)
               : call.stop_audio);
      position = min(audio_at, call.audio_positions - 1);
      slot = call.rows * (call.texts + 1) + row * (call.sounds + stop_targets_of_codes) + audio_at;
    }
  }
  call.to.token[place] = token;
  call.to.position[place] = position;
  call.to.slot[place] = slot;
  if (token >= 0) atomicAdd(call.to.counts + token, 1);  // integers: any order gives the same
}

__global__ void describe_slots(const PackCall call) {
  const int slot = blockIdx.x * blockDim.x + threadIdx.x;
  const int text_slots = call.rows * (call.texts + 1);
  const int a_row = call.sounds + stop_targets_of_codes;
  if (slot >= text_slots + call.rows * a_row) return;
  const bool is_text = slot < text_slots;
  const int row = is_text ? slot / (call.texts + 1) : (slot - text_slots) / a_row;
  const int at = is_text ? slot % (call.texts + 1) : (slot - text_slots) % a_row;
  const RowPlaces places = row_places(call, row);
  const int written =
      is_text ? places.text - 1 - (call.reads_stop ? 1 : 0) : places.audio - 1 - stop_places;
  int place = -1, target = -1, read = -1;
  const int last = is_text ? written : written + stop_places;
  if (places.text + places.audio > 0 && at <= last) {
    place = call.to.starts[row] + call.latents + (is_text ? 0 : places.text) + at;
    if (place >= call.to.starts[row + 1]) {
      place = -1;
    } else if (is_text) {
      target = at < written ? checked(call.text[static_cast<int64_t>(row) * call.texts + at],
                                      call.text_tokens)
                            : call.stop_text;
    } else {
      const int64_t first = static_cast<int64_t>(row) * call.sounds;
      if (at < call.slice[2 * row] || at >= call.slice[2 * row + 1])
        target =
            at < written ? checked(call.codes[first + at], call.audio_tokens) : call.stop_audio;
      if (at > 0 && at <= written)
        read = checked(call.read_codes[first + at - 1], call.audio_tokens);
    }
  }
  call.to.place[slot] = place;
  call.to.target[slot] = target;
  call.to.read[slot] = read;
}

}  // namespace

void launch_pack(const PackCall& call, cudaStream_t stream) {
  const int slots = call.rows * (call.texts + 1 + call.sounds + stop_targets_of_codes);
  C10_CUDA_CHECK(cudaMemsetAsync(call.to.counts, 0,
                                 sizeof(int32_t) * (call.text_tokens + call.audio_tokens), stream));
  find_starts<<<1, 256, 0, stream>>>(call);
  describe_places<<<(call.places + 255) / 256, 256, 0, stream>>>(call);
  describe_slots<<<(slots + 255) / 256, 256, 0, stream>>>(call);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tandem
