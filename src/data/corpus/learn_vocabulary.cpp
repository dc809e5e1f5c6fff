#include "data/corpus/learn_vocabulary.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "data/corpus/clip_ids.h"
#include "data/corpus/clip_index.h"
#include "tandem/error.h"
#include "text/bpe_train.h"
#include "util/atomic_file.h"

namespace tandem {

std::string learn_vocabulary(const std::string& index, const std::string& language, int tokens) {
  const ClipIndex clips = ClipIndex::open(index);
  std::vector<std::string> texts;
  for (int64_t row = 0; row < clips.size(); ++row) {
    const ClipView clip = clips[row];
    const std::string_view spoken_in = clip.language.empty() ? language : clip.language;
    const std::string text = spoken_text(std::string(clip.text), spoken_in);
    if (!text.empty()) texts.push_back(text);
  }
  if (texts.empty())
    throw Error(ErrorKind::data,
                fmt::format("the clips of `{}` have no texts to learn a vocabulary from", index))
        .hint("a voice learns from recordings with texts; prepare a dataset that has them");
  const auto file = std::filesystem::path(index).parent_path() / "vocab.json";
  write_file_atomically(file, train_bpe(texts, {.vocabulary_size = tokens, .at_most = true}));
  return file.string();
}

}  // namespace tandem
