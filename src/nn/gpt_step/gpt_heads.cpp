// The two heads with their losses, in chunks of rows that fit the work space, and the measuring of
// all products.
#ifdef TANDEM_WITH_CUDA
#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_bf16.h>

#include "nn/gpt_step/gpt_walk.h"

namespace tandem {
namespace {

bf16* half_of(const at::Tensor& tensor) { return static_cast<bf16*>(tensor.data_ptr()); }

// The three products of a head over `rows` rows. The head is padded, the gradient of its weight is
// not.
struct HeadProducts {
  Product logits, input_flow, weight;
  HeadProducts(const at::Tensor& head, const at::Tensor& bias, const bf16* inputs,
               const at::Tensor& work, bf16* flow, const at::Tensor& gradient, int64_t rows) {
    const int64_t tokens = head.size(0), width = head.size(1);
    logits.left = inputs;
    logits.right = head.data_ptr();
    logits.right_turned = true;
    logits.out = work.data_ptr();
    logits.rows = rows;
    logits.columns = tokens;
    logits.inner = width;
    if (bias.defined()) logits.bias = bias.data_ptr();

    input_flow.left = work.data_ptr();
    input_flow.right = head.data_ptr();
    input_flow.out = flow;
    input_flow.rows = rows;
    input_flow.columns = width;
    input_flow.inner = tokens;

    weight.left = work.data_ptr();
    weight.left_turned = true;
    weight.left_stride = tokens;
    weight.right = inputs;
    weight.out = gradient.data_ptr();
    weight.to_float = true;
    weight.rows = gradient.size(0);
    weight.columns = width;
    weight.inner = rows;
  }
};

}  // namespace

void GptWalk::head(Head which) {
  const bool text = which == Head::text, recalls = which == Head::recall;
  const TrainedWeight& weight = text      ? weights_.text_head_weight
                                : recalls ? weights_.audio_embedding
                                          : weights_.audio_head_weight;
  const TrainedWeight& bias = text ? weights_.text_head_bias : weights_.audio_head_bias;
  const at::Tensor& padded = text ? buffers_.text_head : buffers_.audio_head;
  const at::Tensor& padded_bias = text ? buffers_.text_head_bias : buffers_.audio_head_bias;
  const auto pad = [&](const at::Tensor& from, const at::Tensor& to) {
    auto* bytes = static_cast<char*>(to.data_ptr());
    C10_CUDA_CHECK(
        cudaMemcpyAsync(bytes, from.data_ptr(), from.nbytes(), cudaMemcpyDeviceToDevice, stream_));
    if (to.nbytes() > from.nbytes())
      C10_CUDA_CHECK(
          cudaMemsetAsync(bytes + from.nbytes(), 0, to.nbytes() - from.nbytes(), stream_));
  };
  pad(weight.weight, padded);
  if (!recalls) pad(bias.weight, padded_bias);

  const int64_t batch_rows = batch_.text_lengths.size(0);
  const int64_t texts = batch_rows * (batch_.text.size(1) + 1);
  const int64_t first = text ? 0 : texts;
  const int64_t slots = text ? texts : batch_rows * (batch_.codes.size(1) + 4);
  const int64_t tokens = weight.weight.size(0), stride = padded.size(0), width = sizes_.width;
  const int64_t most = buffers_.logits.numel() / stride;
  for (int64_t done = 0; done < slots; done += most) {
    const int64_t rows = std::min(most, slots - done), at = first + done;
    const bool overwrites = batch_.overwrites && done == 0;
    HeadProducts products(padded, recalls ? at::Tensor() : padded_bias,
                          half_of(buffers_.head_inputs) + at * width, buffers_.logits,
                          half_of(buffers_.head_flow) + at * width, weight.gradient, rows);
    products.input_flow.adds = recalls;  // to that of the audio's head
    products.weight.adds = !overwrites;
    products_.run(products.logits, stream_);
    LossCall loss;
    loss.logits = half_of(buffers_.logits);
    loss.target = (recalls ? buffers_.packing.read : buffers_.packing.target) + at;
    loss.whole = batch_.whole.const_data_ptr<float>() + (text ? 0 : 1);
    loss.factor = static_cast<float>(text      ? options_.text_loss_weight
                                     : recalls ? options_.recall_weight
                                               : 1.);
    loss.loss = buffers_.slot_losses.data_ptr<float>() + at;
    if (scale_.defined()) {
      loss.scale = scale_.const_data_ptr<float>();
    } else {
      loss.hit = buffers_.slot_hits.data_ptr<float>() + at;
    }
    loss.rows = static_cast<int>(rows);
    loss.tokens = static_cast<int>(tokens);
    loss.stride = stride;
    launch_loss(loss, stream_);
    if (!scale_.defined()) continue;
    products_.run(products.input_flow, stream_);
    products_.run(products.weight, stream_);
    if (recalls) continue;
    launch_column_sums(loss.logits, buffers_.head, loss.rows, loss.tokens, stride, stream_);
    SumJobs jobs;
    jobs.overwrite = overwrites;
    jobs.job[jobs.count++] = {.partial = buffers_.head,
                              .out = bias.gradient.data_ptr<float>(),
                              .parts = column_parts,
                              .columns = loss.tokens,
                              .stride = tokens};
    launch_finish_sums(jobs, stream_);
  }
}

void GptWalk::heads() {
  const int64_t rows = batch_.text_lengths.size(0), width = sizes_.width;
  const int64_t texts = rows * (batch_.text.size(1) + 1);
  const int64_t slots = texts + rows * (batch_.codes.size(1) + 4);
  const NormWeights last{half_of(weights_.last_norm_weight.weight),
                         half_of(weights_.last_norm_bias.weight)};
  const NormWeights final{half_of(weights_.final_norm_weight.weight),
                          half_of(weights_.final_norm_bias.weight)};
  LastNormsCall norms;
  norms.packing = buffers_.packing;
  norms.x = half_of(buffers_.x.select(0, sizes_.layers));
  norms.last = last;
  norms.final = final;
  norms.out = half_of(buffers_.head_inputs);
  norms.slots = static_cast<int>(slots);
  norms.width = static_cast<int>(width);
  launch_last_norms(norms, stream_);
  const auto sum_losses = [&](const at::Tensor& to) {
    launch_sum_slots(buffers_.slot_losses.data_ptr<float>(), batch_.whole.const_data_ptr<float>(),
                     buffers_.packing.misfits, static_cast<int>(texts), static_cast<int>(slots),
                     to.data_ptr<float>(), stream_);
  };
  head(Head::text);
  head(Head::audio);
  sum_losses(buffers_.losses);
  if (recalls()) {
    head(Head::recall);
    sum_losses(buffers_.recall);
  }
  if (!scale_.defined()) {
    launch_sum_slots(buffers_.slot_hits.data_ptr<float>(), nullptr, buffers_.packing.misfits,
                     static_cast<int>(texts), static_cast<int>(slots),
                     buffers_.hits.data_ptr<float>(), stream_);
    return;
  }

  LastNormsBackwardCall back;
  back.packing = buffers_.packing;
  back.x = norms.x;
  back.gradient = half_of(buffers_.head_flow);
  back.last = last;
  back.final = final;
  back.out = half_of(buffers_.flow);
  back.masked = half_of(buffers_.masked);
  back.partial = buffers_.head;
  back.places = static_cast<int>(batch_.places);
  back.width = static_cast<int>(width);
  back.dropout = dropout(2 * sizes_.layers);
  launch_last_norms_backward(back, stream_);
  if (options_.fp8) {
    Fp8Jobs masked;
    masked.job[masked.count++] = {
        .in = back.masked, .out = buffers_.fp8_masked, .rows = back.places, .columns = back.width};
    launch_fp8_rows(masked, stream_);
  }
  SumJobs jobs;
  jobs.overwrite = batch_.overwrites;
  for (const TrainedWeight* to :
       {&weights_.last_norm_weight, &weights_.last_norm_bias, &weights_.final_norm_weight,
        &weights_.final_norm_bias, &weights_.blocks.back().contract_bias}) {
    jobs.job[jobs.count] = {.partial = buffers_.head + jobs.count * width,
                            .out = to->gradient.data_ptr<float>(),
                            .parts = sum_blocks(batch_.places),
                            .columns = static_cast<int>(width),
                            .stride = 5 * width};
    ++jobs.count;
  }
  launch_finish_sums(jobs, stream_);
}

void GptWalk::tune(int64_t places) {
  const GptStepBlock& block = weights_.blocks.front();
  batch_.places = places;
  // Products of zeros are faster than others: some waves instead.
  const auto fill = [](const at::Tensor& tensor) {
    tensor.copy_(at::arange(tensor.numel(), tensor.options().dtype(at::kFloat))
                     .mul_(1.7f)
                     .sin_()
                     .view_as(tensor));
  };
  for (const at::Tensor& tensor :
       {buffers_.normed, buffers_.branch, buffers_.wide, buffers_.head_inputs})
    fill(tensor);
  const bool fp8 = options_.fp8;
  if (fp8) {
    const auto count = static_cast<int>(places), width = static_cast<int>(sizes_.width);
    Fp8Jobs jobs;
    jobs.job[jobs.count++] = {half_of(buffers_.normed), buffers_.fp8_normed, count, width};
    jobs.job[jobs.count++] = {half_of(buffers_.branch), buffers_.fp8_masked, count, width};
    jobs.job[jobs.count++] = {wide(0), buffers_.fp8_wide, count, 4 * width};
    launch_fp8_rows(jobs, stream_);
    clear_largest();
    turn_weights(0, /*flows_back=*/true);
  }
  const auto as_run = [&](const Product& product, const Fp8Rows& left, Fp8Weight which) {
    return fp8 ? in_fp8(product, left, buffers_.fp8_turned[which]) : product;
  };
  Product qkv = forward_product(buffers_.normed, block.qkv_weight, buffers_.qkv.select(0, 0));
  qkv.bias = block.qkv_bias.weight.data_ptr();
  Product expand =
      forward_product(buffers_.normed, block.expand_weight, buffers_.before_gelu.select(0, 0));
  expand.bias = block.expand_bias.weight.data_ptr();
  const at::Tensor &narrow = buffers_.branch, wide_in = buffers_.wide.select(0, 0);
  for (const Product& product : {as_run(qkv, buffers_.fp8_normed, fp8_qkv),
                                 forward_product(buffers_.normed, block.project_weight, narrow),
                                 as_run(forward_product(wide_in, block.contract_weight, narrow),
                                        buffers_.fp8_wide, fp8_contract)})
    products_.tune(product, stream_);
  const float apart = products_.tune(as_run(expand, buffers_.fp8_normed, fp8_expand), stream_);
  if (!fp8) {
    expand.out = wide_in.data_ptr();
    expand.before_gelu = buffers_.before_gelu.select(0, 0).data_ptr();
    const float together = products_.tune(expand, stream_);
    if (places == options_.most_places) {
      // The kernel alone reads and writes what is four times as wide, at about 3.3 TB/s of an H200.
      const float alone = static_cast<float>(places * 4 * sizes_.width * 4) / 3.3e9f;
      // What is computed again must have the same bits.
      gelu_in_product_ = !options_.recompute && together > 0 && together < apart + alone;
    }
  }
  const auto back = [&](const at::Tensor& gradient, const TrainedWeight& weight, void* out,
                        const Fp8Rows& left, Fp8Weight which) {
    const Product product = backward_product(gradient.data_ptr(), weight, out);
    products_.tune(fp8 ? in_fp8(product, left, straight_weights(0)[which]) : product, stream_);
  };
  const Fp8Rows &fp8_thin = buffers_.fp8_masked, &fp8_thick = buffers_.fp8_wide;
  back(buffers_.normed, block.contract_weight, wide(1), fp8_thin, fp8_contract);
  back(wide_in, block.expand_weight, narrow.data_ptr(), fp8_thick, fp8_expand);
  back(buffers_.normed, block.project_weight, narrow.data_ptr(), fp8_thin, fp8_project);
  back(wide_in, block.qkv_weight, narrow.data_ptr(), fp8_thick, fp8_qkv);

  const int64_t width = sizes_.width;
  const at::Tensor scratch =
      at::zeros({width * std::max({4 * width, sizes_.text_tokens, sizes_.audio_tokens})},
                buffers_.losses.options());
  const auto tune_weight = [&](Product product) {
    product.out = scratch.data_ptr();
    for (const bool adds : {false, true}) {
      product.adds = adds;
      products_.tune(product, stream_);
    }
  };
  const void *thin = buffers_.normed.data_ptr(), *thick = wide(0);
  tune_weight(weight_product(thin, thick, block.qkv_weight));
  tune_weight(weight_product(thin, buffers_.branch.data_ptr(), block.project_weight));
  tune_weight(weight_product(thin, thick, block.expand_weight));
  tune_weight(weight_product(thick, thin, block.contract_weight));
  for (const bool text : {true, false}) {
    const at::Tensor& head = text ? buffers_.text_head : buffers_.audio_head;
    const int64_t rows =
        std::min({places, buffers_.most_slots, buffers_.logits.numel() / head.size(0)});
    const int64_t tokens = text ? sizes_.text_tokens : sizes_.audio_tokens;
    const HeadProducts products(head, text ? buffers_.text_head_bias : buffers_.audio_head_bias,
                                half_of(buffers_.head_inputs), buffers_.logits,
                                half_of(buffers_.head_flow),
                                scratch.narrow(0, 0, tokens * width).view({tokens, width}), rows);
    for (const Product& product : {products.logits, products.input_flow})
      products_.tune(product, stream_);
    tune_weight(products.weight);
  }
}

}  // namespace tandem
#endif
