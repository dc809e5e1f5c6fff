// The plain decoder: float32 with the operations of the reference. On the CPU (or a simulated
// device) each row is computed in the same order whatever stands beside it, so a text sounds the
// same in every batch. On a GPU it serves comparisons: cuBLAS promises no such thing.
#include <ATen/ATen.h>

#include <deque>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "generate/speech_decoder.h"
#include "models/xtts/xtts.h"
#include "nn/model_parts.h"
#include "nn/rows/prefix_index.h"
#include "nn/rows/rows_cpu.h"
#include "nn/sample.h"

namespace tandem {
namespace {

class PlainDecoder final : public SpeechDecoder {
 public:
  PlainDecoder(const XttsGpt& gpt, LogicalDevice& device, int64_t places, int64_t voices)
      : gpt_(gpt),
        device_(device),
        on_gpu_(device.kind() == DeviceKind::cuda),
        capacity_(longest_prompt(gpt) + gpt.audio_positions.size(0)),
        // cuBLAS would compute a text's rows otherwise without the voice's beside them.
        voices_(on_gpu_ ? 0 : voices) {
    DeviceScope scope(device_);
    if (on_gpu_) move_to(gpt_, "", device.torch_device());
    head_ = gpt_.audio_head.weight.t().contiguous();
    const int64_t width = gpt.size.width, heads = gpt.size.heads;
    const auto options = scope.options().dtype(at::kFloat);
    for (size_t i = 0; i < gpt.blocks.size(); ++i) {
      keys_.push_back(at::zeros({places, heads, capacity_, width / heads}, options));
      values_.push_back(at::zeros_like(keys_.back()));
    }
    latents_ = at::zeros({places, gpt.audio_positions.size(0), width}, options);
    states_.resize(static_cast<size_t>(places));
    kept_.resize(static_cast<size_t>(voices_.room()));
  }

  void start(const std::vector<DecodeStart>& starts) override {
    DeviceScope scope(device_);
    std::vector<DrawnCode> drawn;
    for (const DecodeStart& start : starts) {
      State& state = states_[static_cast<size_t>(start.place)];
      state = {.options = start, .seen = std::vector<bool>(gpt_.size.audio_tokens)};
      // What the reference's prompt holds as ids: ones, and the start code.
      state.seen[1] = true;
      state.seen[static_cast<size_t>(gpt_.size.start_audio_token)] = true;
      const int64_t length = start.prompt.size(0), first = recall_voice(start);
      const int64_t rows = length - first;
      std::vector<int64_t> places(static_cast<size_t>(rows), start.place), positions;
      for (int64_t i = first; i < length; ++i) positions.push_back(i);
      const at::Tensor hidden =
          trunk(start.prompt.narrow(0, first, rows).to(device_.torch_device()), places, positions);
      if (first == 0) keep_voice(start);
      prompt_rows_ += static_cast<uint64_t>(rows);
      state.position = length;
      draw({start.place}, hidden.narrow(0, rows - 1, 1), drawn);
    }
    done_.push_back(std::move(drawn));
  }

  void step(const std::vector<int>& places) override {
    DeviceScope scope(device_);
    std::vector<int> speaking;
    std::vector<int64_t> rows, positions, codes, steps;
    for (const int place : places) {
      State& state = states_[static_cast<size_t>(place)];
      if (!state.active) continue;
      speaking.push_back(place);
      rows.push_back(place);
      positions.push_back(state.position++);
      codes.push_back(state.code);
      steps.push_back(state.steps);
    }
    std::vector<DrawnCode> drawn;
    if (!speaking.empty()) {
      const auto ids = [&](const std::vector<int64_t>& values) {
        return at::tensor(values, at::kLong).to(device_.torch_device());
      };
      const at::Tensor x = at::embedding(gpt_.audio_embedding, ids(codes)) +
                           at::embedding(gpt_.audio_positions, ids(steps));
      draw(speaking, trunk(x, rows, positions), drawn);
    }
    done_.push_back(std::move(drawn));
  }

  size_t queued() const override { return done_.size(); }
  std::vector<DrawnCode> collect() override {
    std::vector<DrawnCode> drawn = std::move(done_.front());
    done_.pop_front();
    return drawn;
  }
  at::Tensor latents(int place, int64_t first, int64_t count) override {
    DeviceScope scope(device_);
    return latents_[place].narrow(0, first, count).clone();
  }
  int64_t most_queued() const override { return 1; }
  uint64_t prompt_rows() const override { return prompt_rows_; }

 private:
  struct State {
    DecodeStart options;
    std::vector<bool> seen;
    int64_t position = 0, steps = 0, code = 0;
    bool active = true;
  };

  // The rows of the voice, in the order of memory.
  static at::Tensor voice_of(const DecodeStart& start) {
    return start.prompt.narrow(0, 0, rows_of_a_voice).contiguous();
  }
  static std::span<const float> numbers(const at::Tensor& rows) {
    return {rows.const_data_ptr<float>(), static_cast<size_t>(rows.numel())};
  }
  // Keys or values of the voice at a place: [H, rows of a voice, W].
  static at::Tensor voice_at(const at::Tensor& cache, int place) {
    return cache[place].narrow(1, 0, rows_of_a_voice);
  }

  // Writes the voice's keys and values to the place; how many rows need not be computed.
  int64_t recall_voice(const DecodeStart& start) {
    if (!start.begins_with_a_voice()) return 0;
    const int64_t slot = voices_.find(numbers(voice_of(start)));
    if (slot < 0) return 0;
    const std::vector<at::Tensor>& kept = kept_[static_cast<size_t>(slot)];
    for (size_t layer = 0; layer < kept.size(); ++layer) {
      voice_at(keys_[layer], start.place).copy_(kept[layer][0]);
      voice_at(values_[layer], start.place).copy_(kept[layer][1]);
    }
    return rows_of_a_voice;
  }
  void keep_voice(const DecodeStart& start) {
    if (!start.begins_with_a_voice()) return;
    const int64_t slot = voices_.keep(numbers(voice_of(start)));
    if (slot < 0) return;
    std::vector<at::Tensor>& kept = kept_[static_cast<size_t>(slot)];
    kept.clear();
    for (size_t layer = 0; layer < keys_.size(); ++layer)
      kept.push_back(
          at::stack({voice_at(keys_[layer], start.place), voice_at(values_[layer], start.place)}));
  }

  at::Tensor product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const {
    return on_gpu_ ? at::addmm(bias, x, weight) : row_product_cpu(x, weight, bias);
  }

  // queries [R, H, W] -> [R, D]
  at::Tensor attend(const at::Tensor& queries, size_t layer, const std::vector<int64_t>& places,
                    const std::vector<int64_t>& positions) const {
    if (!on_gpu_)
      return row_attention_cpu(queries, keys_[layer], values_[layer], places, positions);
    std::vector<at::Tensor> rows;
    for (size_t i = 0; i < places.size(); ++i) {
      const auto known = [&](const at::Tensor& cache) {
        return cache[places[i]].narrow(1, 0, positions[i] + 1);  // [H, T, W]
      };
      const at::Tensor q = queries[static_cast<int64_t>(i)].unsqueeze(1);  // [H, 1, W]
      rows.push_back(at::scaled_dot_product_attention(q, known(keys_[layer]), known(values_[layer]))
                         .reshape({-1}));
    }
    return at::stack(rows);
  }

  // [R, D] -> [R, D] behind both norms.
  at::Tensor trunk(const at::Tensor& inputs, const std::vector<int64_t>& places,
                   const std::vector<int64_t>& positions) {
    const int64_t rows = inputs.size(0), width = inputs.size(1), heads = gpt_.size.heads;
    at::Tensor x = inputs.contiguous().clone();
    for (size_t layer = 0; layer < gpt_.blocks.size(); ++layer) {
      const XttsGptBlock& block = gpt_.blocks[layer];
      const at::Tensor qkv = product(block.norm_attention(x), block.qkv_weight, block.qkv_bias)
                                 .view({rows, 3, heads, width / heads});
      for (int64_t r = 0; r < rows; ++r) {
        const auto row = static_cast<size_t>(r);
        keys_[layer][places[row]].select(1, positions[row]).copy_(qkv[r][1]);
        values_[layer][places[row]].select(1, positions[row]).copy_(qkv[r][2]);
      }
      const at::Tensor attended = attend(qkv.select(1, 0).contiguous(), layer, places, positions);
      x += product(attended, block.project_weight, block.project_bias);
      const at::Tensor inner =
          at::gelu(product(block.norm_mlp(x), block.expand_weight, block.expand_bias), "tanh");
      x += product(inner, block.contract_weight, block.contract_bias);
    }
    return gpt_.final_norm(gpt_.last_norm(x));
  }

  void draw(const std::vector<int>& places, const at::Tensor& hidden,
            std::vector<DrawnCode>& drawn) {
    const at::Tensor logits = product(hidden, head_, gpt_.audio_head.bias).cpu();
    for (size_t i = 0; i < places.size(); ++i) {
      State& state = states_[static_cast<size_t>(places[i])];
      const auto row = static_cast<int64_t>(i);
      latents_[places[i]][state.steps].copy_(hidden[row]);
      const DecodeStart& options = state.options;
      state.code = sample_code(
          {logits[row].const_data_ptr<float>(), static_cast<size_t>(logits.size(1))}, state.seen,
          {.temperature = options.sampling.temperature,
           .top_k = options.sampling.top_k,
           .top_p = options.sampling.top_p,
           .repetition_penalty = options.sampling.repetition_penalty,
           .greedy = options.greedy},
          draw_unit(options.key, static_cast<uint64_t>(state.steps)));
      state.seen[static_cast<size_t>(state.code)] = true;
      ++state.steps;
      state.active = state.code != gpt_.size.stop_audio_token && state.steps < options.max_codes;
      drawn.push_back({places[i], state.code});
    }
  }

  XttsGpt gpt_;  // shares the model's tensors unless they were moved to a GPU
  LogicalDevice& device_;
  bool on_gpu_;
  at::Tensor head_;  // [D, codes]
  int64_t capacity_;
  std::vector<at::Tensor> keys_, values_;  // a layer: [P, H, C, W]
  at::Tensor latents_;                     // [P, steps, D]
  std::vector<State> states_;
  uint64_t prompt_rows_ = 0;
  PrefixIndex voices_;
  std::vector<std::vector<at::Tensor>> kept_;  // a slot, a layer: [2, H, rows of a voice, W]
  std::deque<std::vector<DrawnCode>> done_;
};

}  // namespace

bool DecodeStart::begins_with_a_voice() const {
  return voice_rows == rows_of_a_voice && prompt.size(0) > rows_of_a_voice;
}

int64_t longest_prompt(const XttsGpt& gpt) {
  // Latents, text with its two ends, start code.
  return rows_of_a_voice + gpt.text_positions.size(0) + 1;
}

std::unique_ptr<SpeechDecoder> make_plain_decoder(const XttsGpt& gpt, LogicalDevice& device,
                                                  int64_t places, int64_t voices) {
  return std::make_unique<PlainDecoder>(gpt, device, places,
                                        voices < 0 ? voices_for(places) : voices);
}

}  // namespace tandem
