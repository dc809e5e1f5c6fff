// Sound being made beside the decoding: windows go in, samples come out in the same order. On a GPU
// it has a stream of its own; elsewhere it is made at once. One thread uses it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "device/stream.h"
#include "models/xtts/sound_window.h"

namespace tandem {

class LogicalDevice;

class SoundQueue {
 public:
  // What becomes of one window's samples.
  using Deliver = std::function<void(std::vector<float>)>;

  SoundQueue(const Vocoder& vocoder, LogicalDevice& device, bool own_kernels);

  void add(SoundWindow window, Deliver deliver);
  int64_t waiting_frames() const { return waiting_frames_; }
  bool idle() const { return waiting_.empty() && running_.empty(); }
  // Hands the waiting windows to the device, after what its compute stream has been given so far.
  void flush();
  // Delivers the oldest pass if it is done; with `wait` waits for it.
  void deliver(bool wait);

 private:
  struct Running {
    Event done;
    std::vector<at::Tensor> samples;  // on the host once done
    std::vector<SoundWindow> windows;
    std::vector<Deliver> deliver;
  };
  void start(Running running);
  void make(Running& running);

  Vocoder moved_;  // on the device, for the plain maker
  LogicalDevice& device_;
  std::unique_ptr<SoundMaker> maker_;
  std::vector<SoundWindow> waiting_;
  std::vector<Deliver> waiting_deliver_;
  int64_t waiting_frames_ = 0;
  std::deque<Running> running_;
};

}  // namespace tandem
