#ifdef TANDEM_WITH_CUDA
#include "nn/gpt_step/gpt_attention.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>

#include "nn/gpt_step/hopper_attention.h"
#include "nn/work_note.h"

namespace tandem {
namespace {

AttentionTiles tiles_in(const at::Tensor& table) {
  auto* first = reinterpret_cast<int4*>(table.data_ptr());
  return {.queries = first, .keys = first + table.size(1)};
}

HopperAttention described(const at::Tensor& qkv, const PackedSequences& sequences,
                          const at::Tensor& tiles, bool causal) {
  HopperAttention call;
  call.qkv = static_cast<const bf16*>(qkv.const_data_ptr());
  call.by_head = qkv.stride(1) < qkv.stride(2);
  call.causal = causal;
  call.tiles = tiles_in(tiles);
  call.sequences = static_cast<int>(sequences.starts.size(0)) - 1;
  call.places = static_cast<int>(qkv.size(0));
  call.heads = static_cast<int>(qkv.size(2));
  return call;
}

// The host learns lengths only for whoever traces work that is not captured.
double pairs_of(const PackedSequences& sequences, bool causal, cudaStream_t stream) {
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusActive;
  if (!WorkNote::heard() || cudaStreamIsCapturing(stream, &capturing) != cudaSuccess ||
      capturing != cudaStreamCaptureStatusNone)
    return 0;
  const at::Tensor lengths = sequences.starts.to(at::kCPU).diff().to(at::kDouble);
  const double squares = (lengths * lengths).sum().item<double>();
  return causal ? (squares + lengths.sum().item<double>()) / 2 : squares;
}

}  // namespace

DeterministicScope::DeterministicScope()
    : before_(at::globalContext().deterministicAlgorithms()),
      warned_(at::globalContext().deterministicAlgorithmsWarnOnly()) {
  at::globalContext().setDeterministicAlgorithms(true, false);
}
DeterministicScope::~DeterministicScope() {
  at::globalContext().setDeterministicAlgorithms(before_, warned_);
}

GptAttention::GptAttention(int64_t heads, int64_t head_width, int64_t most_places,
                           int64_t most_sequences, bool causal, int64_t slots)
    : own_(head_width == hopper_head_width && hopper_attention_runs()), causal_(causal) {
  if (!own_) return;
  const int64_t most = attention_tiles(most_places, most_sequences, key_tile_rows);
  tiles_ = at::empty({2, most, 4}, at::TensorOptions(at::kCUDA).dtype(at::kInt));
  sums_ = at::empty({slots, 2, most, heads * head_width},
                    at::TensorOptions(at::kCUDA).dtype(at::kFloat));
}

GptAttention::BiasParts GptAttention::bias_parts(const PackedSequences& sequences, int64_t places,
                                                 int64_t slot) const {
  const auto parts = [&](int64_t rows) {
    return static_cast<int>(attention_tiles(places, sequences.starts.size(0) - 1, rows));
  };
  return {.query = sums_[slot][0].const_data_ptr<float>(),
          .value = sums_[slot][1].const_data_ptr<float>(),
          .query_parts = parts(query_tile_rows),
          .value_parts = parts(key_tile_rows)};
}

void GptAttention::begin(const PackedSequences& sequences, int64_t places, cudaStream_t stream) {
  pairs_ = own_ ? pairs_of(sequences, causal_, stream) : 0;
  if (own_)
    launch_plan_tiles(sequences.starts.const_data_ptr<int32_t>(),
                      static_cast<int>(sequences.starts.size(0)) - 1, static_cast<int>(places),
                      tiles_in(tiles_), stream);
}

void GptAttention::forward(const at::Tensor& qkv, const PackedSequences& sequences,
                           const at::Tensor& out, const at::Tensor& logsumexp,
                           cudaStream_t stream) {
  if (own_) {
    HopperAttention call = described(qkv, sequences, tiles_, causal_);
    call.pairs = pairs_;
    call.out = static_cast<bf16*>(out.data_ptr());
    call.logsumexp = logsumexp.data_ptr<float>();
    launch_hopper_attention(call, stream);
    return;
  }
  const auto [attended, sums, state, unused, mask] = at::_flash_attention_forward(
      qkv.select(1, 0), qkv.select(1, 1), qkv.select(1, 2), sequences.starts, sequences.starts,
      sequences.longest, sequences.longest, 0.0, causal_, false);
  out.copy_(attended);
  logsumexp.copy_(sums);
  unused_state_[0] = state;
  unused_state_[1] = unused;
}

void GptAttention::backward(const at::Tensor& gradient, const at::Tensor& qkv,
                            const at::Tensor& out, const at::Tensor& logsumexp,
                            const PackedSequences& sequences, const at::Tensor& qkv_gradient,
                            const at::Tensor& dots, cudaStream_t stream, int64_t slot) {
  if (own_) {
    HopperAttention call = described(qkv, sequences, tiles_, causal_);
    call.pairs = pairs_;
    call.out = static_cast<bf16*>(out.data_ptr());
    call.logsumexp = logsumexp.data_ptr<float>();
    call.gradient = static_cast<const bf16*>(gradient.const_data_ptr());
    call.qkv_gradient = static_cast<bf16*>(qkv_gradient.data_ptr());
    call.dots = dots.data_ptr<float>();
    call.query_sums = sums_[slot][0].data_ptr<float>();
    call.value_sums = sums_[slot][1].data_ptr<float>();
    launch_hopper_attention_backward(call, stream);
    return;
  }
  const DeterministicScope deterministic;
  const auto [query, key, value] = at::_flash_attention_backward(
      gradient, qkv.select(1, 0), qkv.select(1, 1), qkv.select(1, 2), out, logsumexp,
      sequences.starts, sequences.starts, sequences.longest, sequences.longest, 0.0, causal_,
      unused_state_[0], unused_state_[1]);
  qkv_gradient.select(1, 0).copy_(query);
  qkv_gradient.select(1, 1).copy_(key);
  qkv_gradient.select(1, 2).copy_(value);
}

}  // namespace tandem
#endif
