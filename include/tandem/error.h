// The one exception of Tandem. Thrown inside, turned into an exit code once, in main.
//
//   throw Error(ErrorKind::io, "cannot open `a.wav`: no such file").hint("check paths.train_data");
//
// The message is a whole sentence: what is wrong, where, what was expected. The hint says what to
// do.
#pragma once

#include <stdexcept>
#include <string>

namespace tandem {

enum class ErrorKind {
  usage,        // the command line is wrong                                  exit 2
  config,       // a setting is unknown, of the wrong type or out of range    exit 1
  device,       // the GPUs asked for cannot be had                           exit 1
  data,         // the input data cannot be used                              exit 3
  io,           // a file or the disk failed                                  exit 4
  corrupt,      // a file is not what it claims to be                         exit 3
  memory,       // out of memory, or over a limit that was set                exit 5
  numeric,      // a loss or gradient is not finite                           exit 6
  peer,         // another rank or a collective failed                        exit 7
  interrupted,  // Ctrl-C                                                     exit 130
  terminated,   // told to stop; a checkpoint was saved                       exit 143
  internal,     // our own mistake                                            exit 1
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& sentence) : std::runtime_error(sentence), kind_(kind) {}

  ErrorKind kind() const { return kind_; }
  const std::string& hint() const { return hint_; }
  // True when the user has already been told (the contract's own lines): main stays silent.
  bool reported() const { return reported_; }

  Error& hint(std::string text) & {
    hint_ = std::move(text);
    return *this;
  }
  Error&& hint(std::string text) && {
    hint_ = std::move(text);
    return std::move(*this);
  }
  Error&& mark_reported() && {
    reported_ = true;
    return std::move(*this);
  }

 private:
  ErrorKind kind_;
  std::string hint_;
  bool reported_ = false;
};

int exit_code(ErrorKind kind);
const char* to_string(ErrorKind kind);

// The sentence of `error` followed by those of the exceptions nested in it
// (std::throw_with_nested), each after ": ". The hint, if any level has one, is returned apart.
struct Explanation {
  std::string sentence;
  std::string hint;
  ErrorKind kind = ErrorKind::internal;
  bool reported = false;
};
Explanation explain(const std::exception& error);

}  // namespace tandem
