// Looks at the result of every tensor operation while it lives, and keeps the first number that is
// not one: the operation, its shape, and the parameter it used. Slow: each operation is waited for.
#pragma once

#include <cstdint>
#include <memory>

namespace tandem {

class Learner;

class NanWatch {
 public:
  NanWatch(Learner& learner, int64_t step);
  ~NanWatch();
  void check() const;  // throws Error(numeric) that names what was found

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
