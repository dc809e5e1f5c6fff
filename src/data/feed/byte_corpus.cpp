#include "data/feed/byte_corpus.h"

#include <fmt/format.h>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/counted_random.h"

namespace tandem {

ByteCorpus::ByteCorpus(const std::string& path, int64_t context) : context_(context) {
  const std::string text = read_file(path);
  const auto bytes = static_cast<int64_t>(text.size());
  train_bytes_ = bytes - bytes / 10;
  const int64_t needed = 10 * (context + 1);
  if (bytes < needed) {
    throw Error(
        ErrorKind::data,
        fmt::format("`{}` has {} bytes; --stage bytes needs at least {} (ten windows of {})", path,
                    bytes, needed, context + 1))
        .hint("give a longer text, or a smaller --model-size");
  }
  text_ = at::empty({bytes}, at::kByte);
  std::copy(text.begin(), text.end(), static_cast<char*>(text_.data_ptr()));
}

Batch ByteCorpus::windows(const at::Tensor& text, const std::vector<int64_t>& starts) const {
  at::NoGradGuard no_grad;
  const auto count = static_cast<int64_t>(starts.size());
  const at::Tensor first = at::tensor(starts).to(text.device(), /*non_blocking=*/true).unsqueeze(1);
  const at::Tensor places = (first + at::arange(context_ + 1, first.options())).view({-1});
  const at::Tensor bytes = text.index_select(0, places).view({count, context_ + 1}).to(at::kLong);
  return {.fields = {bytes.narrow(1, 0, context_).contiguous(),
                     bytes.narrow(1, 1, context_).contiguous()},
          .rows = count,
          .whole_rows = count};
}

Batch ByteCorpus::train_batch(uint64_t seed, int64_t index, int64_t first, int64_t count) {
  const auto choices = static_cast<uint64_t>(train_bytes_ - context_);
  std::vector<int64_t> starts;
  for (int64_t sample = first; sample < first + count; ++sample) {
    starts.push_back(static_cast<int64_t>(counted_below(choices, seed, "byte window",
                                                        static_cast<uint64_t>(index),
                                                        static_cast<uint64_t>(sample))));
  }
  if (!device_text_.defined()) {
    const LogicalDevice* device = DeviceScope::current();
    const auto where = device ? device->torch_device() : text_.device();
    device_text_ = text_.to(where, /*non_blocking=*/false, /*copy=*/true);
  }
  Batch batch = windows(device_text_, starts);
  batch.index = index;
  return batch;
}

int64_t ByteCorpus::validation_windows() const {
  return (text_.numel() - train_bytes_ - 1) / context_;
}

Batch ByteCorpus::validation_batch(int64_t first, int64_t count) const {
  const int64_t available = std::max<int64_t>(1, validation_windows());
  std::vector<int64_t> starts;
  for (int64_t i = first; i < first + count; ++i) {
    starts.push_back(
        std::min(train_bytes_ + (i % available) * context_, text_.numel() - context_ - 1));
  }
  return windows(text_, starts);
}

Batch ByteValidation::prepare(const HostBatch& host) {
  const int64_t windows = std::max<int64_t>(1, corpus_.validation_windows());
  const int64_t first = host.index * batch_size_;
  Batch batch = corpus_.validation_batch(first, batch_size_);
  batch.index = host.index;
  batch.rows = std::clamp<int64_t>(windows - first, 0, batch_size_);
  const at::Device here =
      DeviceScope::current() ? DeviceScope::current()->torch_device() : at::Device(at::kCPU);
  // A copy even where host and device share an address space: the batch belongs to the device.
  for (at::Tensor& field : batch.fields)
    field = field.to(here, field.scalar_type(), /*non_blocking=*/true, /*copy=*/true);
  return batch;
}

}  // namespace tandem
