// Byte pair encoding: a word as characters, then the pair with the lowest rank merged again and
// again. Files with the same merge twice are in use (XTTS v2 has 676); the last one counts.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "text/merges.h"
#include "text/token_model.h"

namespace tandem {

class BpeModel : public TokenModel {
 public:
  explicit BpeModel(const JsonPlace& place);
  void tokenize(std::string_view word, std::vector<int32_t>& ids) const override;
  int32_t unknown_id() const override { return unknown_; }

 private:
  void read_merges(const JsonPlace& place);
  void add_merge(std::string_view left, std::string_view right, size_t rank, size_t index,
                 const JsonPlace& place);
  int32_t id_of_character(std::string_view character, char32_t code) const;
  void split(std::string_view word, std::vector<int32_t>& ids) const;
  bool add_bytes(std::string_view text, std::vector<int32_t>& ids) const;
  void merge(std::vector<int32_t>& ids, size_t from) const;
  void merge_short(std::vector<int32_t>& ids, size_t from) const;
  void merge_long(std::vector<int32_t>& ids, size_t from) const;

  MergeTable merges_;
  std::array<int32_t, 128> ascii_{};  // by character: its id, or none
  std::array<int32_t, 256> bytes_{};  // by byte: the id of <0x..>, or none
  std::string prefix_, suffix_;       // continuing_subword_prefix, end_of_word_suffix
  int32_t unknown_ = Vocabulary::none;
  bool fuse_unknown_ = false, byte_fallback_ = false, ignore_merges_ = false;
};

}  // namespace tandem
