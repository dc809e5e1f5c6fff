#include "generate/sound_queue.h"

#include <ATen/ATen.h>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "models/xtts/xtts.h"

namespace tandem {

SoundQueue::SoundQueue(const Vocoder& vocoder, LogicalDevice& device, bool own_kernels)
    : moved_(vocoder), device_(device) {
  DeviceScope scope(device_);
  if (own_kernels) {
    maker_ = make_cuda_sound_maker(moved_);
  } else {
    if (device.kind() == DeviceKind::cuda) move_to(moved_, "", device.torch_device());
    maker_ = make_plain_sound_maker(moved_);
  }
}

void SoundQueue::add(SoundWindow window, Deliver deliver) {
  waiting_frames_ += window.count;
  waiting_.push_back(std::move(window));
  waiting_deliver_.push_back(std::move(deliver));
}

// In the scope and on the stream that are current.
void SoundQueue::make(Running& running) {
  running.samples = maker_->sound(running.windows);
  if (device_.kind() != DeviceKind::cuda) return;
  for (at::Tensor& samples : running.samples) {
    at::Tensor host =
        at::empty(samples.sizes(), samples.options().device(at::kCPU).pinned_memory(true));
    host.copy_(samples, /*non_blocking=*/true);
    samples = host;
  }
}

void SoundQueue::flush() {
  if (waiting_.empty()) return;
  Running running;
  running.windows = std::exchange(waiting_, {});
  running.deliver = std::exchange(waiting_deliver_, {});
  waiting_frames_ = 0;
  if (device_.kind() == DeviceKind::cuda) {
    Stream& stream = device_.preparation_stream();
    stream.wait(device_.compute_stream().record());
    stream.run([&] {
      for (const SoundWindow& window : running.windows) hold_for_current_stream(window.latents);
      make(running);
    });
    running.done = stream.record();
  } else {
    DeviceScope scope(device_);
    make(running);
  }
  running_.push_back(std::move(running));
}

void SoundQueue::deliver(bool wait) {
  while (!running_.empty() && (wait || running_.front().done.done())) {
    wait = false;
    Running running = std::move(running_.front());
    running_.pop_front();
    running.done.synchronize();
    for (size_t i = 0; i < running.samples.size(); ++i) {
      const at::Tensor samples = running.samples[i].contiguous();
      const float* data = samples.const_data_ptr<float>();
      running.deliver[i](std::vector<float>(data, data + samples.numel()));
    }
  }
}

}  // namespace tandem
