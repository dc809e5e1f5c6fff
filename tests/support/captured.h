// What a piece of code prints, by stream; and the Error it throws, to be looked at.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tandem/error.h"

namespace tandem {

struct Captured {
  std::string out, err;
};

inline Captured capture(const std::function<void()>& work) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  work();
  Captured captured;
  captured.out = testing::internal::GetCapturedStdout();
  captured.err = testing::internal::GetCapturedStderr();
  return captured;
}

// The Error `work` throws; a test failure, and an internal error without words, when it throws
// none.
inline Error error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no tandem::Error was thrown";
  return Error(ErrorKind::internal, "");
}

}  // namespace tandem
