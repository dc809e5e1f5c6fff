// Looks at the result of every tensor operation of its thread, and of backward passes called there,
// while it lives, and keeps the first number that is not one: the operation, its shape, and the
// parameter it used. Slow: each operation is waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace c10 {
class DebugInfoGuard;
}

namespace tandem {

struct Phase;

class NanWatch {
 public:
  NanWatch(const std::vector<Phase>& phases, int64_t step);
  ~NanWatch();
  void check() const;  // throws Error(numeric) that names what was found

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::unique_ptr<c10::DebugInfoGuard> known_here_;
  uint64_t callback_ = 0;
};

}  // namespace tandem
