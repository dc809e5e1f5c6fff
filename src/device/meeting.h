// Where the ranks of an in-process group meet. Collective number n is one slot; every rank brings
// what it contributes and waits, with a deadline, until all have come. Two rounds a collective:
// contributions, then results. A missing rank, a rank that left, or ranks that disagree about the
// collective end the group.
#pragma once

#include <ATen/core/TensorBody.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/stream.h"

namespace tandem {

struct Contribution {
  at::Tensor tensor;
  Event ready;  // the tensor may be read after it
};

class Meeting {
 public:
  Meeting(int size, std::chrono::milliseconds timeout)
      : size_(size), timeout_(timeout), left_(static_cast<size_t>(size)) {}

  // `what` names the collective with its shapes: all ranks must bring the same. Returns every
  // rank's contribution of this round, in rank order. Throws Error(peer).
  std::vector<Contribution> exchange(uint64_t collective, int round, int rank,
                                     const std::string& what, Contribution contribution);

  void leave(int rank);
  // A rank that broke inside a collective ends it for the others at once, not after the timeout.
  void report_failure(int rank, const std::string& why);
  int size() const { return size_; }

 private:
  struct Slot {
    std::map<int, Contribution> arrived;
    std::map<int, std::string> what;
    int taken = 0;
  };
  void fail(const std::string& sentence);  // with mutex_ held
  [[noreturn]] void throw_failure() const;
  std::string describe_missing(const Slot& slot) const;

  const int size_;
  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<uint64_t, int>, Slot> slots_;
  std::vector<bool> left_;
  std::optional<std::string> failure_;
};

}  // namespace tandem
