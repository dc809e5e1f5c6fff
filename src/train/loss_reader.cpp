#include "train/loss_reader.h"

#include "device/logical_device.h"

namespace tandem {

void LossReader::push(const at::Tensor& loss, const at::Tensor& gradient_norm, Deliver deliver) {
  at::NoGradGuard no_grad;
  const at::Tensor values = at::stack({loss.to(at::kFloat), gradient_norm.to(at::kFloat)});
  Pending pending{.values = values, .copied = {}, .deliver = std::move(deliver)};
  if (device_.kind() == DeviceKind::cuda) {
    pending.values = at::empty({2}, at::TensorOptions().dtype(at::kFloat).pinned_memory(true));
    pending.values.copy_(values, /*non_blocking=*/true);
    pending.copied = device_.compute_stream().record();
  }
  pending_.push_back(std::move(pending));
  while (!pending_.empty() && (pending_.size() > most_pending || pending_.front().copied.done()))
    deliver_first();
}

void LossReader::drain() {
  while (!pending_.empty()) deliver_first();
}

void LossReader::deliver_first() {
  Pending first = std::move(pending_.front());
  pending_.pop_front();
  first.copied.synchronize();
  const auto* values = first.values.const_data_ptr<float>();
  first.deliver(values[0], values[1]);
}

}  // namespace tandem
