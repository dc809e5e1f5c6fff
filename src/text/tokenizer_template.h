// The `post_processor` of a tokenizer file: ids that stand before and after those of the text.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "text/tokenizer_json.h"

namespace tandem {

class TokenTemplate {
 public:
  TokenTemplate() = default;  // the text alone
  // The value of `post_processor`. Error(data) names a kind that is not known here.
  explicit TokenTemplate(const JsonPlace& place);

  void apply(std::vector<int32_t>& ids) const;
  int64_t end() const;  // one more than the largest id

 private:
  void read(const JsonPlace& place, int depth);
  void read_template(const JsonPlace& place);

  bool given_ = false;
  std::vector<std::optional<int32_t>> parts_;  // nothing: the ids of the text
};

}  // namespace tandem
