#include "text/tokenizer.h"

#include <fmt/format.h>

#include <filesystem>

#include "tandem/error.h"
#include "text/added_tokens.h"
#include "text/bpe_model.h"
#include "text/pretokenize.h"
#include "text/token_decode.h"
#include "text/tokenizer_normalize.h"
#include "text/tokenizer_template.h"
#include "text/unigram_model.h"
#include "util/atomic_file.h"

namespace tandem {

std::unique_ptr<const TokenModel> read_token_model(const JsonPlace& place) {
  const std::string& kind = place.member("type").text();
  if (kind == "BPE") return std::make_unique<BpeModel>(place);
  if (kind == "Unigram") return std::make_unique<UnigramModel>(place);
  place.unsupported(fmt::format("a model of kind `{}` is not known", kind));
}

namespace {

constexpr uint64_t largest_file = uint64_t{256} << 20;

template <typename Part>
Part read_part(const JsonPlace& file, const std::string& name) {
  const auto place = file.find(name);
  return place ? Part(*place) : Part();
}

class FileTokenizer : public Tokenizer {
 public:
  explicit FileTokenizer(const JsonPlace& file)
      : normalizer_(read_part<TokenNormalizer>(file, "normalizer")),
        pretokenizer_(read_part<Pretokenizer>(file, "pre_tokenizer")),
        model_(read_token_model(file.member("model"))),
        template_(read_part<TokenTemplate>(file, "post_processor")),
        decoder_(read_part<TokenDecoder>(file, "decoder")) {
    if (const auto added = file.find("added_tokens")) {
      added_ = AddedTokens(*added, *model_, normalizer_);
    }
    for (const char* name : {"truncation", "padding"}) {
      if (const auto place = file.find(name)) {
        place->unsupported(fmt::format("{} would change the ids silently; set it to null", name));
      }
    }
  }

  std::vector<int32_t> encode(std::string_view given) const override {
    std::vector<int32_t> ids;
    ids.reserve(given.size() / 2 + 4);
    std::string storage;
    const std::string_view text = valid_utf8(given, storage);
    Work work;
    const auto token = [&ids](int32_t id) { ids.push_back(id); };
    added_.split(
        text, false,
        [&](size_t begin, size_t end) {
          work.stretch.text.assign(text.substr(begin, end - begin));
          work.stretch.origin = begin == 0 ? character_at(text, 0).length : 0;
          encode_stretch(work, ids);
        },
        token);
    template_.apply(ids);
    return ids;
  }

  std::string decode(const std::vector<int32_t>& ids) const override {
    std::vector<std::string> tokens;
    for (const int32_t id : ids) {
      const AddedToken* added = added_.token_of(id);
      const std::string* token =
          added != nullptr ? &added->content : model_->vocabulary().token_of(id);
      if (token != nullptr && !added_.is_special(*token)) tokens.push_back(*token);
    }
    return decoder_.decode(std::move(tokens));
  }

  int64_t vocabulary_size() const override {
    return std::max({model_->vocabulary().end(), added_.end(), template_.end()});
  }
  int32_t unknown_id() const override { return model_->unknown_id(); }
  int32_t id_of(std::string_view token) const override {
    const int32_t id = added_.id_of(token);
    return id != Vocabulary::none ? id : model_->vocabulary().id_of(token);
  }

 private:
  struct Work {  // kept between the stretches of one text
    Stretch stretch;
    Words words, scratch;
  };

  void encode_stretch(Work& work, std::vector<int32_t>& ids) const {
    normalizer_.apply(work.stretch);
    if (!added_.any(true)) {
      encode_words(work, 0, work.stretch.text.size(), ids);
      return;
    }
    added_.split(
        work.stretch.text, true,
        [&](size_t begin, size_t end) { encode_words(work, begin, end, ids); },
        [&ids](int32_t id) { ids.push_back(id); });
  }

  void encode_words(Work& work, size_t begin, size_t end, std::vector<int32_t>& ids) const {
    if (begin == end) return;
    const size_t origin = work.stretch.origin > begin ? work.stretch.origin - begin : 0;
    work.words.text.assign(work.stretch.text, begin, end - begin);
    work.words.ranges.assign(1, {0, end - begin, origin});
    pretokenizer_.apply(work.words, work.scratch);
    for (const Words::Range& range : work.words.ranges) {
      model_->tokenize(work.words.word(range), ids);
    }
  }

  TokenNormalizer normalizer_;
  Pretokenizer pretokenizer_;
  std::unique_ptr<const TokenModel> model_;
  AddedTokens added_;
  TokenTemplate template_;
  TokenDecoder decoder_;
};

}  // namespace

std::unique_ptr<const Tokenizer> parse_tokenizer(std::string_view json, const std::string& name) {
  const nlohmann::json parsed = parse_tokenizer_json(json, name);
  return std::make_unique<FileTokenizer>(JsonPlace(parsed, name));
}

std::unique_ptr<const Tokenizer> load_tokenizer(const std::string& path) {
  std::error_code failed;
  const uint64_t size = std::filesystem::file_size(path, failed);
  if (!failed && size > largest_file) {
    throw Error(ErrorKind::data, fmt::format("the tokenizer file `{}` has {} bytes; the largest "
                                             "that is read has {}",
                                             path, size, largest_file));
  }
  return parse_tokenizer(read_file(path), path);
}

}  // namespace tandem
