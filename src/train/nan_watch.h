// Looks at the result of every tensor operation of its thread, and of backward passes called there,
// while it lives, and keeps the first number that is not one: the operation, its shape, and the
// parameter it used. Slow: each operation is waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/error.h"
#include "util/clock.h"

namespace c10 {
class DebugInfoGuard;
}

namespace tandem {

struct Phase;

class NanWatch {
 public:
  NanWatch(const std::vector<Phase>& phases, int64_t step);
  ~NanWatch();
  struct Found {
    Clock::time_point when;
    std::string sentence;
  };
  std::optional<Found> found() const;
  void check() const;  // throws what was found
  static Error error(const Found& found);

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::unique_ptr<c10::DebugInfoGuard> known_here_;
  uint64_t callback_ = 0;
};

}  // namespace tandem
