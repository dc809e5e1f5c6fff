#include "nn/gpt_step/gpt_step.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tandem/error.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/cuda/CUDAContext.h>

#include "nn/gpt_step/gpt_walk.h"
#endif

namespace tandem {

#ifdef TANDEM_WITH_CUDA
namespace {

constexpr int64_t most_pieces = 6;

void require(bool fits, const std::string& sentence) {
  if (!fits) throw Error(ErrorKind::internal, sentence);
}

void check_weight(const TrainedWeight& weight, const char* name, at::IntArrayRef shape,
                  bool half_gradient = false) {
  const bool fits = weight.weight.defined() && weight.weight.sizes() == shape &&
                    weight.gradient.defined() && weight.gradient.sizes() == shape;
  require(fits, fmt::format("the weight `{}` of a training step and its gradient must be [{}]",
                            name, fmt::join(shape, ", ")));
  require(weight.weight.is_cuda() && weight.weight.scalar_type() == at::kBFloat16 &&
              (weight.gradient.scalar_type() == at::kFloat ||
               (half_gradient && weight.gradient.scalar_type() == at::kBFloat16)) &&
              weight.weight.is_contiguous() && weight.gradient.is_contiguous(),
          fmt::format("the weight `{}` of a training step must be bfloat16 on a GPU, its gradient "
                      "float32{}, both without gaps",
                      name, half_gradient ? " or bfloat16" : ""));
  const auto at = [](const at::Tensor& tensor) {
    return reinterpret_cast<uintptr_t>(tensor.data_ptr()) % 16;
  };
  require(
      at(weight.weight) == 0 && at(weight.gradient) == 0,
      fmt::format("the weight `{}` of a training step must begin at a multiple of 16 bytes", name));
}

GptSizes check_weights(const GptStepWeights& w) {
  require(!w.blocks.empty() && w.text_embedding.weight.defined() &&
              w.text_embedding.weight.dim() == 2 && w.audio_embedding.weight.defined() &&
              w.audio_embedding.weight.dim() == 2,
          "a training step needs layers and both embeddings");
  GptSizes sizes;
  sizes.layers = static_cast<int64_t>(w.blocks.size());
  sizes.width = w.text_embedding.weight.size(1);
  sizes.heads = w.heads;
  sizes.text_tokens = w.text_embedding.weight.size(0);
  sizes.audio_tokens = w.audio_embedding.weight.size(0);
  const int64_t d = sizes.width;
  require(w.heads > 0 && d % (8 * w.heads) == 0 && d / w.heads <= 256 && d <= widest,
          fmt::format("a training step of width {} cannot have {} heads; expected at most {} with "
                      "heads of a multiple of 8, at most 256",
                      d, w.heads, widest));
  check_weight(w.text_embedding, "text_embedding", {sizes.text_tokens, d});
  check_weight(w.audio_embedding, "audio_embedding", {sizes.audio_tokens, d});
  check_weight(w.text_positions, "text_positions", {w.text_positions.weight.size(0), d});
  check_weight(w.audio_positions, "audio_positions", {w.audio_positions.weight.size(0), d});
  for (const GptStepBlock& b : w.blocks) {
    for (const auto* one : {&b.norm1_weight, &b.norm1_bias, &b.norm2_weight, &b.norm2_bias,
                            &b.project_bias, &b.contract_bias})
      check_weight(*one, "norm or bias", {d});
    check_weight(b.qkv_weight, "qkv_weight", {d, 3 * d}, true);
    check_weight(b.qkv_bias, "qkv_bias", {3 * d});
    check_weight(b.project_weight, "project_weight", {d, d}, true);
    check_weight(b.expand_weight, "expand_weight", {d, 4 * d}, true);
    check_weight(b.expand_bias, "expand_bias", {4 * d});
    check_weight(b.contract_weight, "contract_weight", {4 * d, d}, true);
  }
  for (const auto* one :
       {&w.last_norm_weight, &w.last_norm_bias, &w.final_norm_weight, &w.final_norm_bias})
    check_weight(*one, "last norm", {d});
  check_weight(w.text_head_weight, "text_head_weight", {sizes.text_tokens, d});
  check_weight(w.text_head_bias, "text_head_bias", {sizes.text_tokens});
  check_weight(w.audio_head_weight, "audio_head_weight", {sizes.audio_tokens, d});
  check_weight(w.audio_head_bias, "audio_head_bias", {sizes.audio_tokens});
  return sizes;
}

void check_options(const GptStepOptions& o, const GptSizes& sizes) {
  require(!o.fp8 || gpt_step_takes_fp8(sizes.width),
          fmt::format("a training step of width {} cannot have 8-bit products here", sizes.width));
  require(o.most_places > 0 && o.most_rows > 0 && o.longest > 0 && o.latents >= 0 &&
              o.most_places <= (int64_t{1} << 24) && o.dropout >= 0 && o.dropout < 1,
          fmt::format("a training step cannot have {} places, {} rows of at most {} and dropout {}",
                      o.most_places, o.most_rows, o.longest, o.dropout));
}

void check_tensor(const at::Tensor& tensor, const char* name, at::IntArrayRef shape,
                  at::ScalarType type) {
  require(tensor.defined() && tensor.sizes() == shape && tensor.scalar_type() == type &&
              tensor.is_cuda() && tensor.is_contiguous(),
          fmt::format("`{}` of a training step's batch must be [{}] of {} on the GPU", name,
                      fmt::join(shape, ", "), at::toString(type)));
}

}  // namespace

struct GptStep::Parts {
  GptSizes sizes;
  GptStepOptions options;
  int64_t text_positions, audio_positions;
  GptWalk walk;
  int64_t rows = 0;

  Parts(const GptStepWeights& weights, const GptStepOptions& given)
      : sizes(check_weights(weights)),
        options((check_options(given, sizes), given)),
        text_positions(weights.text_positions.weight.size(0)),
        audio_positions(weights.audio_positions.weight.size(0)),
        walk(weights, sizes, options) {}

  void check(const GptStepBatch& b) const {
    require(b.text_lengths.defined() && b.text.defined() && b.text.dim() == 2 &&
                b.codes.defined() && b.codes.dim() == 2,
            "a training step's batch has no text or no codes");
    const int64_t batch_rows = b.text_lengths.numel(), texts = b.text.size(1),
                  sounds = b.codes.size(1);
    check_tensor(b.text, "text", {batch_rows, texts}, at::kLong);
    check_tensor(b.text_lengths, "text_lengths", {batch_rows}, at::kLong);
    check_tensor(b.codes, "codes", {batch_rows, sounds}, at::kLong);
    if (b.read_codes.defined())
      check_tensor(b.read_codes, "read_codes", {batch_rows, sounds}, at::kLong);
    check_tensor(b.code_lengths, "code_lengths", {batch_rows}, at::kLong);
    check_tensor(b.slice, "slice", {batch_rows, 2}, at::kLong);
    check_tensor(b.whole, "whole", {2}, at::kFloat);
    check_tensor(b.latents, "latents", {batch_rows, options.latents, sizes.width}, at::kFloat);
    require(batch_rows > 0 && batch_rows <= options.most_rows &&
                batch_rows * (texts + 1 + sounds + 4) <= walk.buffers().most_slots &&
                b.places > 0 && b.places <= options.most_places &&
                b.places <= (batch_rows + 1) * options.longest,
            fmt::format("a batch of {} rows of {} text ids and {} codes, {} places, does not fit a "
                        "training step for {} rows of {} places, {} together",
                        batch_rows, texts, sounds, b.places, options.most_rows, options.longest,
                        options.most_places));
    if (texts + 1 + (options.reads_stop ? 1 : 0) > text_positions || sounds + 4 > audio_positions)
      throw Error(ErrorKind::data,
                  fmt::format("a batch needs {} positions of text and {} of audio; this model has "
                              "{} and {}",
                              texts + 1, sounds + 4, text_positions, audio_positions))
          .hint("drop longer clips: tandem prepare --max-seconds, --max-tokens");
  }
};

bool gpt_step_takes_fp8(int64_t width) {
  return width <= widest_fp8 && width % 128 == 0 && fp8_runs();
}

GptStep::GptStep(const GptStepWeights& weights, const GptStepOptions& options)
    : parts_(std::make_unique<Parts>(weights, options)) {}
GptStep::~GptStep() = default;

int GptStep::pieces() const {
  return static_cast<int>(std::min(most_pieces, parts_->sizes.layers));
}
int64_t GptStep::first_layer(int piece) const {
  return parts_->sizes.layers * (pieces() - 1 - piece) / pieces();
}

void GptStep::run_piece(int piece, const GptStepBatch& batch, const at::Tensor& step,
                        const at::Tensor& scale, uint64_t seed) {
  GptWalk& walk = parts_->walk;
  if (piece == 0) {
    parts_->check(batch);
    check_tensor(step, "step", {}, at::kLong);
    check_tensor(scale, "scale", {}, at::kFloat);
    parts_->rows = batch.text_lengths.size(0);
  }
  walk.begin(batch, step, scale, seed);
  if (piece == 0) {
    walk.forward();
    walk.heads();
  }
  const int64_t above = piece == 0 ? parts_->sizes.layers : first_layer(piece - 1);
  for (int64_t layer = above - 1; layer >= first_layer(piece); --layer) walk.backward(layer);
  walk.finish_sums();
  if (piece == pieces() - 1) walk.embeddings_backward();
}

GptStepResult GptStep::run(const GptStepBatch& batch, const at::Tensor& step,
                           const at::Tensor& scale, uint64_t seed) {
  for (int piece = 0; piece < pieces(); ++piece) run_piece(piece, batch, step, scale, seed);
  return result();
}

GptStepResult GptStep::result() const {
  const GptBuffers& buffers = parts_->walk.buffers();
  return {.losses = buffers.losses,
          .recall = parts_->options.recall_weight > 0 ? buffers.recall[1] : at::Tensor(),
          .latents_gradient = buffers.latents_gradient.narrow(0, 0, parts_->rows)};
}

GptStep::Judged GptStep::judge(const GptStepBatch& batch) {
  parts_->check(batch);
  parts_->walk.begin(batch, {}, {}, 0);
  parts_->walk.forward();
  parts_->walk.heads();
  return {.losses = parts_->walk.buffers().losses, .hits = parts_->walk.buffers().hits};
}

uint64_t GptStep::buffer_bytes() const { return parts_->walk.bytes(); }

at::Tensor GptStep::dropout_mask(int64_t mask, int64_t places, const at::Tensor& step,
                                 uint64_t seed) const {
  parts_->walk.begin({}, step, {}, seed);
  const at::Tensor out = at::ones({places, parts_->sizes.width}, step.options().dtype(at::kFloat));
  const Dropout dropout = parts_->walk.dropout(mask);
  if (dropout.threshold)
    launch_write_mask(dropout, out.data_ptr<float>(), static_cast<int>(places),
                      static_cast<int>(parts_->sizes.width), at::cuda::getCurrentCUDAStream());
  return out;
}

#else

bool gpt_step_takes_fp8(int64_t) { return false; }
struct GptStep::Parts {};
GptStep::GptStep(const GptStepWeights&, const GptStepOptions&) {
  throw Error(ErrorKind::device, "a fused training step needs a GPU; this build has no CUDA")
      .hint("train with training.precision=fp32, or build with nvcc");
}
GptStep::~GptStep() = default;
int GptStep::pieces() const { return 0; }
int64_t GptStep::first_layer(int) const { return 0; }
void GptStep::run_piece(int, const GptStepBatch&, const at::Tensor&, const at::Tensor&, uint64_t) {}
GptStepResult GptStep::run(const GptStepBatch&, const at::Tensor&, const at::Tensor&, uint64_t) {
  return {};
}
GptStepResult GptStep::result() const { return {}; }
GptStep::Judged GptStep::judge(const GptStepBatch&) { return {}; }
uint64_t GptStep::buffer_bytes() const { return 0; }
at::Tensor GptStep::dropout_mask(int64_t, int64_t, const at::Tensor&, uint64_t) const { return {}; }

#endif

}  // namespace tandem
