#include "text/tokenizer_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/vocabulary.h"

namespace tandem {
namespace {

constexpr int deepest_sequence = 16;
constexpr size_t most_parts = 1000;

}  // namespace

TokenTemplate::TokenTemplate(const JsonPlace& place) { read(place, 0); }

void TokenTemplate::read(const JsonPlace& place, int depth) {
  const std::string& kind = place.member("type").text();
  if (kind == "Sequence") {
    if (depth == deepest_sequence) place.unsupported("too many sequences inside sequences");
    const JsonPlace list = place.member("processors");
    for (size_t i = 0; i < list.array_size(); ++i) read(list.element(i), depth + 1);
  } else if (kind == "TemplateProcessing") {
    if (given_) place.unsupported("a second template");
    read_template(place);
  } else if (kind != "ByteLevel") {  // which moves offsets only
    place.unsupported(fmt::format("a post-processor of kind `{}` is not known", kind));
  }
}

void TokenTemplate::read_template(const JsonPlace& place) {
  given_ = true;
  const JsonPlace pieces = place.member("single");
  const JsonPlace specials = place.member("special_tokens");
  for (size_t i = 0; i < pieces.array_size(); ++i) {
    const JsonPlace piece = pieces.element(i);
    if (const auto sequence = piece.find("Sequence")) {
      if (sequence->member("id").text() != "A") sequence->expected("the sequence `A`");
      parts_.emplace_back(std::nullopt);
    } else {
      const std::string& name = piece.member("SpecialToken").member("id").text();
      const JsonPlace ids = specials.member(name).member("ids");
      for (size_t k = 0; k < ids.array_size(); ++k) {
        parts_.emplace_back(static_cast<int32_t>(ids.element(k).whole(0, largest_token_id)));
      }
    }
    if (parts_.size() > most_parts) pieces.unsupported("a template of too many parts");
  }
}

void TokenTemplate::apply(std::vector<int32_t>& ids) const {
  if (!given_) return;
  std::vector<int32_t> out;
  out.reserve(ids.size() + parts_.size());
  for (const std::optional<int32_t>& part : parts_) {
    if (part) {
      out.push_back(*part);
    } else {
      out.insert(out.end(), ids.begin(), ids.end());
    }
  }
  ids.swap(out);
}

int64_t TokenTemplate::end() const {
  int64_t end = 0;
  for (const std::optional<int32_t>& part : parts_)
    end = std::max<int64_t>(end, part.value_or(-1) + 1);
  return end;
}

}  // namespace tandem
