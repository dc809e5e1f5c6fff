#include "tandem/error.h"

#include <new>

namespace tandem {

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage: return 2;
    case ErrorKind::data:
    case ErrorKind::corrupt: return 3;
    case ErrorKind::io: return 4;
    case ErrorKind::memory: return 5;
    case ErrorKind::numeric: return 6;
    case ErrorKind::peer: return 7;
    case ErrorKind::interrupted: return 130;
    case ErrorKind::terminated: return 143;
    case ErrorKind::config:
    case ErrorKind::device:
    case ErrorKind::internal: return 1;
  }
  return 1;
}

const char* to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage: return "usage";
    case ErrorKind::config: return "config";
    case ErrorKind::device: return "device";
    case ErrorKind::data: return "data";
    case ErrorKind::io: return "io";
    case ErrorKind::corrupt: return "corrupt";
    case ErrorKind::memory: return "memory";
    case ErrorKind::numeric: return "numeric";
    case ErrorKind::peer: return "peer";
    case ErrorKind::interrupted: return "interrupted";
    case ErrorKind::terminated: return "terminated";
    case ErrorKind::internal: return "internal";
  }
  return "internal";
}

Explanation explain(const std::exception& error) {
  Explanation out;
  out.sentence = error.what();
  bool kind_known = false;
  if (const auto* ours = dynamic_cast<const Error*>(&error)) {
    out.kind = ours->kind();
    out.hint = ours->hint();
    out.reported = ours->reported();
    kind_known = true;
  } else if (dynamic_cast<const std::bad_alloc*>(&error)) {
    out.kind = ErrorKind::memory;
    out.sentence = "out of host memory";
    kind_known = true;
  }
  try {
    std::rethrow_if_nested(error);
  } catch (const std::exception& cause) {
    const Explanation inner = explain(cause);
    out.sentence += ": " + inner.sentence;
    if (out.hint.empty()) out.hint = inner.hint;
    if (!kind_known) out.kind = inner.kind;
  } catch (...) {  // something that is no std::exception has nothing to say
  }
  return out;
}

}  // namespace tandem
