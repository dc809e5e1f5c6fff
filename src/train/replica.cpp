#include "train/replica.h"

#include "device/communicator.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "nn/checksum.h"

namespace tandem {
namespace {
constexpr size_t gradient_bucket_bytes = size_t{25} << 20;
constexpr double largest_gradient_norm = 1.0;
}  // namespace

Replica::Replica(LogicalDevice& device, const ByteGptSize& size, uint64_t seed,
                 double learning_rate)
    : device_(device) {
  DeviceScope scope(device);
  model_ = ByteGpt::make(size, seed);
  optimizer_.emplace(weights(), AdamWOptions{.learning_rate = learning_rate});
}

NamedTensors Replica::weights() {
  NamedTensors list;
  model_.visit(
      [&](const std::string& name, at::Tensor& parameter) { list.emplace_back(name, parameter); });
  return list;
}

// A copy even where source and target share an address space: the batch then belongs to this
// device.
at::Tensor Replica::to_device(const at::Tensor& tensor) const {
  const at::Tensor copy =
      tensor.to(device_.torch_device(), tensor.scalar_type(), /*non_blocking=*/true, /*copy=*/true);
  hold_for_current_stream(tensor);
  return copy;
}

at::Tensor Replica::add_gradients(const Batch& batch) {
  DeviceScope scope(device_);
  const double share = static_cast<double>(batch.rows) / static_cast<double>(batch.whole_rows);
  const at::Tensor loss =
      model_.loss(batch.fields[byte_tokens], batch.fields[byte_targets]) * share;
  loss.backward();
  return loss.detach();
}

at::Tensor Replica::update(Communicator* group, int64_t accumulation) {
  DeviceScope scope(device_);
  at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = optimizer_->gradients();
  if (group) group->all_reduce_bucketed(gradients, Reduce::sum, gradient_bucket_bytes);
  if (accumulation > 1) at::_foreach_div_(gradients, static_cast<double>(accumulation));
  const at::Tensor norm = optimizer_->clip_gradients(largest_gradient_norm);
  optimizer_->step();
  optimizer_->clear_gradients();
  return norm;
}

at::Tensor Replica::validate(const ByteCorpus& corpus, int64_t first, int64_t count,
                             int64_t whole) {
  DeviceScope scope(device_);
  at::NoGradGuard no_grad;
  if (count == 0) return at::zeros({}, scope.options());
  const Batch batch = corpus.validation_batch(first, count);
  const double share = static_cast<double>(count) / static_cast<double>(whole);
  return model_.loss(to_device(batch.fields[byte_tokens]), to_device(batch.fields[byte_targets])) *
         share;
}

at::Tensor Replica::checksum() {
  DeviceScope scope(device_);
  std::vector<at::Tensor> parameters;
  for (const auto& [name, parameter] : weights()) parameters.push_back(parameter);
  return tandem::checksum(parameters);
}

void Replica::load(const Checkpoint& checkpoint) {
  DeviceScope scope(device_);
  copy_by_name(checkpoint.weights, weights(), "model.safetensors");
  optimizer_->load_state(checkpoint.optimizer);
}

}  // namespace tandem
