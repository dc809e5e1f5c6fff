// Text to ids and back, as a Hugging Face `tokenizers` JSON file says: BPE (XTTS) or Unigram (T5).
// Immutable once loaded; any number of threads may use one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // With the file's own tokens around the text (T5: `</s>` at the end). Bytes that are no UTF-8
  // count as U+FFFD.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  // As the file's decoder joins them. Special tokens and ids without a token are left out.
  virtual std::string decode(const std::vector<int32_t>& ids) const = 0;
  // One more than the largest id, which is what an embedding needs: ids may have holes.
  virtual int64_t vocabulary_size() const = 0;
  virtual int32_t unknown_id() const = 0;                   // -1: none
  virtual int32_t id_of(std::string_view token) const = 0;  // -1: no such token
};

// Throws Error(io), Error(corrupt) or Error(data) with the file and what was expected there.
std::unique_ptr<const Tokenizer> load_tokenizer(const std::string& path);
std::unique_ptr<const Tokenizer> parse_tokenizer(std::string_view json, const std::string& name);
// Every byte of the text is its id: what is used where no vocabulary was given.
std::unique_ptr<const Tokenizer> byte_tokenizer();

// What XTTS feeds its tokenizer: "[en]" + text with " " as "[SPACE]". `en-us` is `en`, `zh` is
// `zh-cn`.
std::string xtts_input(std::string_view cleaned_text, std::string_view language);

}  // namespace tandem
