// The decoder on a GPU: weights in half precision packed for the row kernels, one captured graph
// for each number of rows, states of the places on the device. The host reads what was drawn some
// steps later; a step never waits for it.
#include "generate/speech_decoder.h"

#include "tandem/error.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>

#include <cstring>
#include <deque>
#include <map>

#include "device/cuda_owner.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "models/xtts/xtts_gpt.h"
#include "nn/rows/captured_graph.h"
#include "nn/rows/gpt_rows.h"
#include "nn/rows/row_prefixes.h"

namespace tandem {
namespace {

constexpr int64_t steps_ahead = 4;

int64_t rows_bucket(int64_t rows) {
  int64_t bucket = 1;
  while (bucket < rows) bucket *= 2;
  return bucket;
}

class CudaDecoder final : public SpeechDecoder {
 public:
  CudaDecoder(const XttsGpt& gpt, LogicalDevice& device, int64_t places, RowHalf type,
              const FewRows& few_rows, int64_t voices)
      : gpt_(gpt), device_(device), stream_(raw_cuda_stream(device.compute_stream())) {
    DeviceScope scope(device_);
    c10::cuda::CUDAStreamGuard guard(stream_);
    most_steps_ = gpt.audio_positions.size(0);
    rows_ = std::make_unique<GptRows>(gpt_rows_weights(), type, places,
                                      longest_prompt(gpt) + most_steps_, few_rows);
    // Never again: captured steps hold the buffers' addresses.
    rows_->reserve(std::max(most_prompt_rows, rows_bucket(places)));
    voices_ = std::make_unique<RowPrefixes>(*rows_, rows_of_a_voice, voices);
    const auto ints = at::TensorOptions(device.torch_device()).dtype(at::kInt);
    embedding_ = gpt.audio_embedding.to(device.torch_device());
    position_embedding_ = gpt.audio_positions.to(device.torch_device());
    latents_ = at::zeros({places, most_steps_, gpt.size.width},
                         at::TensorOptions(device.torch_device()).dtype(at::kFloat));
    states_ = at::zeros({places, static_cast<int64_t>(sizeof(DrawState))}, ints.dtype(at::kByte));
    seen_words_ = (gpt.size.audio_tokens + 31) / 32;
    seen_ = at::zeros({places, seen_words_}, ints);
    step_rows_ = at::full({rows_bucket(places)}, -1, ints);
    seen_first_ = at::zeros({seen_words_}, at::TensorOptions().dtype(at::kInt));
    // What the reference's prompt holds as ids: ones, and the start code.
    mark_seen(1);
    mark_seen(gpt.size.start_audio_token);
    seen_first_ = seen_first_.to(device.torch_device());
  }

  ~CudaDecoder() override {
    DeviceScope scope(device_);
    stream_.synchronize();
  }

  void start(const std::vector<DecodeStart>& starts) override {
    DeviceScope scope(device_);
    c10::cuda::CUDAStreamGuard guard(stream_);
    // In batches whose rows the buffers take. A batch may make a voice known to the next.
    std::vector<Starting> batch;
    int64_t rows = 0;
    for (const DecodeStart& start : starts) {
      Starting starting = look_up(start);
      if (!batch.empty() && rows + starting.rows() > most_prompt_rows) {
        start_batch(batch, rows);
        batch.clear();
        rows = 0;
        starting = look_up(start);
      }
      rows += starting.rows();
      batch.push_back(std::move(starting));
    }
    if (!batch.empty()) start_batch(batch, rows);
  }

  void step(const std::vector<int>& places) override {
    DeviceScope scope(device_);
    c10::cuda::CUDAStreamGuard guard(stream_);
    const int64_t bucket = rows_bucket(static_cast<int64_t>(places.size()));
    if (places != current_) {
      at::Tensor rows = at::full({step_rows_.size(0)}, -1,
                                 at::TensorOptions().dtype(at::kInt).pinned_memory(true));
      for (size_t i = 0; i < places.size(); ++i) rows.mutable_data_ptr<int32_t>()[i] = places[i];
      step_rows_.copy_(rows, /*non_blocking=*/true);
      current_ = places;
    }
    Call call;
    call.places = places;
    CapturedGraph& graph = graphs_[bucket];
    if (!graph.captured()) {
      // Once before, so that kernels are loaded and buffers there; its rows are all empty.
      const at::Tensor kept = step_rows_.clone();
      step_rows_.fill_(-1);
      queue_step(bucket);
      graph.capture(stream_, [&] { queue_step(bucket); });
      step_rows_.copy_(kept);
      ++captures_;
    }
    graph.replay(stream_);
    finish(std::move(call));
  }

  size_t queued() const override { return calls_.size(); }
  int64_t most_queued() const override { return steps_ahead; }
  uint64_t captures() const override { return captures_; }
  uint64_t prompt_rows() const override { return prompt_rows_; }

  std::vector<DrawnCode> collect() override {
    Call call = std::move(calls_.front());
    calls_.pop_front();
    call.done.synchronize();
    std::vector<DrawnCode> drawn;
    const int32_t* codes = call.codes.const_data_ptr<int32_t>();
    for (size_t i = 0; i < call.places.size(); ++i) {
      if (codes[i] >= 0) drawn.push_back({call.places[i], codes[i]});
    }
    return drawn;
  }

  at::Tensor latents(int place, int64_t first, int64_t count) override {
    DeviceScope scope(device_);
    c10::cuda::CUDAStreamGuard guard(stream_);
    return latents_[place].narrow(0, first, count).clone();
  }

 private:
  static constexpr int64_t most_prompt_rows = 4096;  // of one batch of prompts
  struct Call {
    std::vector<int> places;
    at::Tensor codes;  // pinned; there when `done` is
    at::cuda::CUDAEvent done;
  };
  struct Starting {
    DecodeStart start;
    int64_t slot = -1;  // where its voice is kept; -1: all is computed
    int64_t first() const { return slot >= 0 ? rows_of_a_voice : 0; }  // row to be computed
    int64_t rows() const { return start.prompt.size(0) - first(); }
  };

  GptRowsWeights gpt_rows_weights() const {
    GptRowsWeights weights{.width = gpt_.size.width, .heads = gpt_.size.heads};
    for (const XttsGptBlock& block : gpt_.blocks) {
      weights.layers.push_back(
          {block.norm_attention.weight, block.norm_attention.bias, block.qkv_weight, block.qkv_bias,
           block.project_weight, block.project_bias, block.norm_mlp.weight, block.norm_mlp.bias,
           block.expand_weight, block.expand_bias, block.contract_weight, block.contract_bias});
    }
    weights.last_norm = {gpt_.last_norm.weight, gpt_.last_norm.bias};
    weights.final_norm = {gpt_.final_norm.weight, gpt_.final_norm.bias};
    weights.head = gpt_.audio_head.weight.t().contiguous();
    weights.head_bias = gpt_.audio_head.bias;
    return weights;
  }

  void mark_seen(int64_t code) {
    auto* words = reinterpret_cast<uint32_t*>(seen_first_.mutable_data_ptr<int32_t>());
    words[code / 32] |= 1u << (code % 32);
  }

  DrawState first_state(const DecodeStart& start) const {
    return {.position = static_cast<int32_t>(start.prompt.size(0)) - 1,
            .step = 0,
            .code = static_cast<int32_t>(gpt_.size.start_audio_token),
            .active = 1,
            .max_steps = static_cast<int32_t>(start.max_codes),
            .stop_code = static_cast<int32_t>(gpt_.size.stop_audio_token),
            .top_k = static_cast<int32_t>(start.sampling.top_k),
            .greedy = start.greedy,
            .temperature = static_cast<float>(start.sampling.temperature),
            .top_p = static_cast<float>(start.sampling.top_p),
            .penalty = static_cast<float>(start.sampling.repetition_penalty),
            .padding = 0,
            .key = start.key};
  }

  Starting look_up(const DecodeStart& start) {
    Starting starting{.start = start};
    starting.start.prompt = start.prompt.contiguous();
    if (start.begins_with_a_voice()) starting.slot = voices_->find(starting.start.prompt);
    return starting;
  }

  // Which rows, places and kept voices the prompts of one batch are; on the device, in one upload.
  struct PromptFacts {
    int64_t rows, count;
    at::Tensor ints;
    const int32_t* place() const { return ints.const_data_ptr<int32_t>(); }
    const int32_t* position() const { return place() + rows; }
    const int32_t* last_row() const { return place() + 2 * rows; }
    const int32_t* last_place() const { return last_row() + count; }
    const int32_t* zero() const { return last_row() + 2 * count; }
    const int32_t* known_slot() const { return last_row() + 3 * count; }
    const int32_t* known_place() const { return last_row() + 4 * count; }
  };

  void start_batch(const std::vector<Starting>& batch, int64_t rows) {
    const auto count = static_cast<int64_t>(batch.size());
    const auto pinned = at::TensorOptions().pinned_memory(true);
    at::Tensor x = at::empty({rows, gpt_.size.width}, pinned.dtype(at::kFloat));
    at::Tensor ints = at::zeros({2 * rows + 5 * count}, pinned.dtype(at::kInt));
    at::Tensor where = at::empty({count}, pinned.dtype(at::kLong));
    at::Tensor states =
        at::empty({count, static_cast<int64_t>(sizeof(DrawState))}, pinned.dtype(at::kByte));
    auto* place = ints.mutable_data_ptr<int32_t>();
    int32_t* position = place + rows;
    int32_t* last_row = position + rows;
    int32_t* last_place = last_row + count;
    int32_t* known_slot = last_place + 2 * count;
    int32_t* known_place = known_slot + count;
    std::vector<RowPrefixes::Computed> computed;
    Call call;
    int64_t row = 0, known = 0;
    for (int64_t i = 0; i < count; ++i) {
      const Starting& starting = batch[static_cast<size_t>(i)];
      const DecodeStart& start = starting.start;
      x.narrow(0, row, starting.rows())
          .copy_(start.prompt.narrow(0, starting.first(), starting.rows()));
      for (int64_t t = starting.first(); t < start.prompt.size(0); ++t, ++row) {
        place[row] = start.place;
        position[row] = static_cast<int32_t>(t);
      }
      last_row[i] = static_cast<int32_t>(row - 1);
      last_place[i] = start.place;
      where.mutable_data_ptr<int64_t>()[i] = start.place;
      if (starting.slot >= 0) {
        known_slot[known] = static_cast<int32_t>(starting.slot);
        known_place[known++] = start.place;
      } else if (start.begins_with_a_voice()) {
        computed.push_back({start.prompt, start.place});
      }
      call.places.push_back(start.place);
      const DrawState state = first_state(start);
      std::memcpy(states.mutable_data_ptr<uint8_t>() + i * static_cast<int64_t>(sizeof state),
                  &state, sizeof state);
    }
    const auto to_device = [&](const at::Tensor& host) {
      return host.to(device_.torch_device(), /*non_blocking=*/true);
    };
    const PromptFacts facts{rows, count, to_device(ints)};
    const at::Tensor at_places = to_device(where);
    states_.index_copy_(0, at_places, to_device(states));
    seen_.index_copy_(0, at_places, seen_first_.expand({count, seen_words_}));
    rows_->x().narrow(0, 0, rows).copy_(x, /*non_blocking=*/true);
    voices_->put(known, facts.known_slot(), facts.known_place(), stream_);
    rows_->run(rows, {facts.place(), facts.position()}, /*one_row_a_place=*/false, stream_);
    rows_->finish({.rows = count,
                   .source_row = facts.last_row(),
                   .place = facts.last_place(),
                   .step = facts.zero()},
                  latents_, stream_);
    draw(count, facts.last_place(), drawn_slot());
    finish(std::move(call));
    voices_->keep(computed, stream_);  // nobody waits for it
    prompt_rows_ += static_cast<uint64_t>(rows);
  }

  void queue_step(int64_t rows) {
    launch_row_begin({.rows = static_cast<int>(rows),
                      .width = static_cast<int>(gpt_.size.width),
                      .row_place = step_rows_.const_data_ptr<int32_t>(),
                      .states = reinterpret_cast<DrawState*>(states_.mutable_data_ptr<uint8_t>()),
                      .embedding = embedding_.const_data_ptr<float>(),
                      .position_embedding = position_embedding_.const_data_ptr<float>(),
                      .x = rows_->x().mutable_data_ptr<float>(),
                      .place = rows_->place().mutable_data_ptr<int32_t>(),
                      .position = rows_->position().mutable_data_ptr<int32_t>(),
                      .step = rows_->step().mutable_data_ptr<int32_t>(),
                      .successor_awaits = rows_->runs_whole(rows)},
                     stream_);
    const int32_t* place = rows_->place().const_data_ptr<int32_t>();
    rows_->run(rows, {place, rows_->position().const_data_ptr<int32_t>()},
               /*one_row_a_place=*/true, stream_);
    rows_->finish({.rows = rows,
                   .source_row = nullptr,
                   .place = place,
                   .step = rows_->step().const_data_ptr<int32_t>()},
                  latents_, stream_);
    draw(rows, place, drawn_slot());
  }

  int32_t* drawn_slot() { return rows_->drawn().mutable_data_ptr<int32_t>(); }

  void draw(int64_t rows, const int32_t* place, int32_t* drawn) {
    launch_row_draw({.rows = static_cast<int>(rows),
                     .codes = static_cast<int>(gpt_.size.audio_tokens),
                     .logit_stride = static_cast<int>(gpt_.size.audio_tokens),
                     .logits = rows_->logits().const_data_ptr<float>(),
                     .place = place,
                     .states = reinterpret_cast<DrawState*>(states_.mutable_data_ptr<uint8_t>()),
                     .seen = reinterpret_cast<uint32_t*>(seen_.mutable_data_ptr<int32_t>()),
                     .seen_words = static_cast<int>(seen_words_),
                     .drawn = drawn},
                    stream_);
  }

  // Any number of calls may be queued: prompts of long texts are started in many batches.
  void finish(Call call) {
    const auto rows = static_cast<int64_t>(call.places.size());
    call.codes = at::empty({rows}, at::TensorOptions().dtype(at::kInt).pinned_memory(true));
    C10_CUDA_CHECK(cudaMemcpyAsync(call.codes.mutable_data_ptr<int32_t>(), drawn_slot(),
                                   static_cast<size_t>(rows) * sizeof(int32_t),
                                   cudaMemcpyDeviceToHost, stream_));
    call.done.record(stream_);
    calls_.push_back(std::move(call));
  }

  const XttsGpt& gpt_;
  LogicalDevice& device_;
  c10::cuda::CUDAStream stream_;
  std::unique_ptr<GptRows> rows_;
  std::unique_ptr<RowPrefixes> voices_;
  at::Tensor embedding_, position_embedding_, latents_, states_, seen_, seen_first_, step_rows_;
  int64_t seen_words_ = 0, most_steps_ = 0;
  std::vector<int> current_;
  std::map<int64_t, CapturedGraph> graphs_;
  std::deque<Call> calls_;
  uint64_t captures_ = 0, prompt_rows_ = 0;
};

}  // namespace

bool has_half_kernels(LogicalDevice& device) {
  DeviceScope scope(device);
  return half_kernels_run();
}

std::unique_ptr<SpeechDecoder> make_cuda_decoder(const XttsGpt& gpt, LogicalDevice& device,
                                                 int64_t places, const std::string& half,
                                                 const FewRows& few_rows, int64_t voices) {
  return std::make_unique<CudaDecoder>(gpt, device, places,
                                       half == "bf16" ? RowHalf::bf16 : RowHalf::fp16, few_rows,
                                       voices < 0 ? voices_for(places) : voices);
}

}  // namespace tandem
#else
namespace tandem {
bool has_half_kernels(LogicalDevice&) { return false; }
std::unique_ptr<SpeechDecoder> make_cuda_decoder(const XttsGpt&, LogicalDevice&, int64_t,
                                                 const std::string&, const FewRows&, int64_t) {
  throw Error(ErrorKind::device, "this build of tandem has no CUDA");
}
}  // namespace tandem
#endif
