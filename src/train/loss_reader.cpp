#include "train/loss_reader.h"

#include <ATen/ATen.h>

#include "device/logical_device.h"

namespace tandem {

void LossReader::push(const at::Tensor& values, Deliver deliver) {
  at::NoGradGuard no_grad;
  constexpr size_t late = 8;
  const bool cuda = device_.kind() == DeviceKind::cuda;
  Pending pending{.values = values.to(at::kFloat), .copied = {}, .deliver = std::move(deliver)};
  if (cuda) {
    pending.values =
        at::empty(values.sizes(), at::TensorOptions().dtype(at::kFloat).pinned_memory(true));
    pending.values.copy_(values, /*non_blocking=*/true);
    pending.copied = device_.compute_stream().record();
  }
  pending_.push_back(std::move(pending));
  while (pending_.size() > (cuda ? late : 0)) deliver_first();
}

void LossReader::drain() {
  while (!pending_.empty()) deliver_first();
}

void LossReader::deliver_first() {
  Pending first = std::move(pending_.front());
  pending_.pop_front();
  first.copied.synchronize();
  const auto* values = first.values.const_data_ptr<float>();
  first.deliver(std::vector<double>(values, values + first.values.numel()));
}

}  // namespace tandem
