// The `decoder` of a tokenizer file: tokens back to text. Immutable; any thread may use it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/tokenizer_json.h"

namespace tandem {

class DecodeStep {
 public:
  virtual ~DecodeStep() = default;
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

class TokenDecoder {
 public:
  TokenDecoder() = default;  // joins with spaces
  // The value of `decoder`. Error(data) names a kind that is not known here.
  explicit TokenDecoder(const JsonPlace& place);

  std::string decode(std::vector<std::string> tokens) const;

 private:
  void read(const JsonPlace& place, int depth);

  bool given_ = false;
  std::vector<std::unique_ptr<const DecodeStep>> steps_;
};

}  // namespace tandem
