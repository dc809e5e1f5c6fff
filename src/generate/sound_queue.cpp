#include "generate/sound_queue.h"

#include <ATen/ATen.h>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "nn/model_parts.h"

namespace tandem {
namespace {

constexpr int64_t frames_of_a_pass = 16384;  // fills a GPU; bounds the buffers

}  // namespace

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
  size_t next = 0;
  while (next < waiting_.size()) {
    Running running;
    int64_t frames = 0;
    while (next < waiting_.size() &&
           (frames == 0 || frames + waiting_[next].count <= frames_of_a_pass)) {
      frames += waiting_[next].count;
      running.windows.push_back(std::move(waiting_[next]));
      running.deliver.push_back(std::move(waiting_deliver_[next]));
      ++next;
    }
    start(std::move(running));
  }
  waiting_.clear();
  waiting_deliver_.clear();
  waiting_frames_ = 0;
}

void SoundQueue::start(Running running) {
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

// One pass at a time: copying samples must not keep the engine from queueing steps.
void SoundQueue::deliver(bool wait) {
  if (running_.empty() || (!wait && !running_.front().done.done())) return;
  Running running = std::move(running_.front());
  running_.pop_front();
  running.done.synchronize();
  for (size_t i = 0; i < running.samples.size(); ++i) {
    const at::Tensor samples = running.samples[i].contiguous();
    const float* data = samples.const_data_ptr<float>();
    running.deliver[i](std::vector<float>(data, data + samples.numel()));
  }
}

}  // namespace tandem
