#include "train/sample_sentences.h"

#include <fmt/format.h>

#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {

std::vector<std::string> read_sample_sentences(const std::string& file) {
  std::string text;
  try {
    text = read_file(file);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("observe.sample_text: {}", error.what()))
        .hint("it is the path of a file with a sentence a line");
  }
  std::vector<std::string> sentences;
  for (const std::string& line : split(text, '\n'))
    if (std::string sentence = trim(line); !sentence.empty())
      sentences.push_back(std::move(sentence));
  if (sentences.empty()) {
    throw Error(ErrorKind::data, fmt::format("observe.sample_text: `{}` has no sentence", file))
        .hint("write one a line");
  }
  return sentences;
}

}  // namespace tandem
