// Collectives among devices of one process. Each rank has a thread that does its part of every
// collective in order, beside the device's own work; on CUDA it launches onto the device's copy
// stream.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <sstream>
#include <thread>

#include "device/communicator.h"
#include "device/cuda_owner.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "device/meeting.h"

namespace tandem {
namespace {

// A mark on the device's present work: done when what this thread queued on it so far is done. On
// the CPU and on simulated devices tensor operations have run when they return, so the mark is
// already done.
Event mark_work(LogicalDevice& device, Stream& stream) {
  return device.kind() == DeviceKind::cuda ? stream.record() : Event();
}

class CollectiveWork final : public Work {
 public:
  explicit CollectiveWork(LogicalDevice& device) : device_(device) {}
  void wait() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finished_; });
    if (failure_) std::rethrow_exception(failure_);
    if (device_.kind() == DeviceKind::cuda) device_.compute_stream().wait(result_ready_);
  }
  bool done() const override {
    std::lock_guard lock(mutex_);
    return finished_ && (failure_ || result_ready_.done());
  }
  void finish(Event ready, std::exception_ptr failure) {
    std::lock_guard lock(mutex_);
    result_ready_ = std::move(ready);
    failure_ = std::move(failure);
    finished_ = true;
    changed_.notify_all();
  }

 private:
  LogicalDevice& device_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool finished_ = false;
  Event result_ready_;
  std::exception_ptr failure_;
};

std::string describe(const char* name, const at::Tensor& tensor) {
  std::ostringstream text;
  text << name << " of " << tensor.sizes() << " " << tensor.scalar_type();
  return text.str();
}

class InProcessCommunicator final : public Communicator {
 public:
  InProcessCommunicator(std::shared_ptr<Meeting> meeting, LogicalDevice& device, int rank)
      : meeting_(std::move(meeting)), device_(device), rank_(rank), thread_([this] { serve(); }) {}

  ~InProcessCommunicator() override {
    meeting_->leave(rank_);
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  int rank() const override { return rank_; }
  int size() const override { return meeting_->size(); }

  std::shared_ptr<Work> all_reduce(at::Tensor tensor, Reduce op) override {
    return submit([this, tensor, op](uint64_t number, const Event& ready) {
      reduce(number, tensor, op, ready);
    });
  }

  std::shared_ptr<Work> broadcast(at::Tensor tensor, int root) override {
    return submit([this, tensor, root](uint64_t number, const Event& ready) {
      const std::string what = describe("broadcast", tensor);
      const auto all = meeting_->exchange(number, 0, rank_, what, {tensor, ready});
      if (rank_ != root) copy_from(tensor, all[static_cast<size_t>(root)]);
      finish_together(number, 1, what);
    });
  }

  std::shared_ptr<Work> gather(at::Tensor tensor, std::vector<at::Tensor>& out, int root) override {
    return submit([this, tensor, root, &out](uint64_t number, const Event& ready) {
      const std::string what = describe("gather", tensor);
      const auto all = meeting_->exchange(number, 0, rank_, what, {tensor, ready});
      if (rank_ == root) {
        out.clear();
        for (const Contribution& theirs : all) {
          out.push_back(at::empty_like(tensor));
          copy_from(out.back(), theirs);
        }
      }
      finish_together(number, 1, what);
    });
  }

  void barrier() override {
    submit([this](uint64_t number, const Event& ready) {
      meeting_->exchange(number, 0, rank_, "barrier", {{}, ready});
    })->wait();
  }

 private:
  using Part = std::function<void(uint64_t number, const Event& ready)>;
  struct Job {
    Part part;
    uint64_t number;
    Event ready;
    std::shared_ptr<CollectiveWork> work;
  };

  std::shared_ptr<Work> submit(Part part) {
    auto work = std::make_shared<CollectiveWork>(device_);
    const Event ready = mark_work(device_, device_.compute_stream());
    {
      std::lock_guard lock(mutex_);
      jobs_.push_back({std::move(part), next_number_++, ready, work});
    }
    changed_.notify_all();
    return work;
  }

  void serve() {
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return closing_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      std::exception_ptr failure;
      Event done;
      try {
        at::NoGradGuard no_grad;
        on_copy_stream([&] {
          job.part(job.number, job.ready);
          done = mark_work(device_, device_.copy_stream());
        });
      } catch (const std::exception& error) {
        meeting_->report_failure(rank_, error.what());
        failure = std::current_exception();
      }
      job.part = nullptr;
      job.work->finish(done, failure);
    }
  }

  void on_copy_stream(const std::function<void()>& work) {
    if (device_.kind() == DeviceKind::cuda) {
      device_.copy_stream().run(work);
    } else {
      DeviceScope scope(device_);
      work();
    }
  }

  void wait_for(const Event& event) {
    if (device_.kind() == DeviceKind::cuda) {
      device_.copy_stream().wait(event);
    } else {
      event.synchronize();
    }
  }

  void copy_from(at::Tensor to, const Contribution& theirs) {
    wait_for(theirs.ready);
    to.copy_(theirs.tensor.view(to.sizes()), /*non_blocking=*/true);
  }

  // The last round: what others still read of ours is not changed, freed or reused before they are
  // done.
  void finish_together(uint64_t number, int round, const std::string& what) {
    const Event mine = mark_work(device_, device_.copy_stream());
    for (const Contribution& theirs : meeting_->exchange(number, round, rank_, what, {{}, mine})) {
      wait_for(theirs.ready);
    }
  }

  // Rank r sums piece r of everybody's tensor, in rank order, and hands it to all.
  void reduce(uint64_t number, const at::Tensor& tensor, Reduce op, const Event& ready) {
    const std::string what = describe("all-reduce", tensor);
    const auto all = meeting_->exchange(number, 0, rank_, what, {tensor, ready});
    const at::Tensor flat =
        tensor.is_contiguous() ? tensor.view({-1}) : tensor.contiguous().view({-1});
    const auto begin = [&](int rank) { return flat.numel() * rank / size(); };
    const auto piece = [&](const at::Tensor& whole, int rank) {
      return whole.reshape({-1}).narrow(0, begin(rank), begin(rank + 1) - begin(rank));
    };
    at::Tensor sum = at::empty_like(piece(flat, rank_));
    for (int rank = 0; rank < size(); ++rank) {
      const Contribution& theirs = all[static_cast<size_t>(rank)];
      wait_for(theirs.ready);
      const at::Tensor part = piece(theirs.tensor, rank_);
      if (rank == 0) {
        sum.copy_(part, /*non_blocking=*/true);
      } else {
        sum.add_(part.device() == sum.device() ? part
                                               : part.to(sum.device(), /*non_blocking=*/true));
      }
    }
    if (op == Reduce::mean) sum.div_(size());
    const auto sums = meeting_->exchange(number, 1, rank_, what,
                                         {sum, mark_work(device_, device_.copy_stream())});
    for (int rank = 0; rank < size(); ++rank) {
      copy_from(piece(flat, rank), sums[static_cast<size_t>(rank)]);
    }
    if (!tensor.is_contiguous()) tensor.copy_(flat.view(tensor.sizes()));
    finish_together(number, 2, what);
  }

  std::shared_ptr<Meeting> meeting_;
  LogicalDevice& device_;
  const int rank_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  uint64_t next_number_ = 0;
  bool closing_ = false;
  std::thread thread_;  // last: it starts when everything above exists
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_in_process_group(
    const std::vector<LogicalDevice*>& devices, std::chrono::milliseconds timeout) {
  auto meeting = std::make_shared<Meeting>(static_cast<int>(devices.size()), timeout);
  std::vector<std::unique_ptr<Communicator>> group;
  for (LogicalDevice* device : devices) {
    const int rank = static_cast<int>(group.size());
    group.push_back(std::make_unique<InProcessCommunicator>(meeting, *device, rank));
  }
  return group;
}

}  // namespace tandem
