// Tandem's tokenizers behind a pipe, for comparisons with other implementations.
//
//   tokenize_tool encode FILE         JSON strings, one a line -> ids as JSON arrays, one a line
//   tokenize_tool decode FILE         the reverse
//   tokenize_tool train SIZE          JSON strings, one a line -> a tokenizer file
//   tokenize_tool extend FILE EXTRA   the same, with EXTRA tokens more than FILE has
//   tokenize_tool time FILE           JSON strings, one a line -> CPU time of encoding and loading
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tandem/error.h"
#include "text/bpe_train.h"
#include "text/tokenizer.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace {

using nlohmann::json;
using tandem::Error;
using tandem::ErrorKind;

std::vector<json> read_lines() {
  std::vector<json> lines;
  for (std::string line; std::getline(std::cin, line);) lines.push_back(json::parse(line));
  return lines;
}

std::vector<std::string> read_texts() {
  std::vector<std::string> texts;
  for (const json& line : read_lines()) texts.push_back(line.get<std::string>());
  return texts;
}

void time_encoding(const std::string& path) {
  // CPU time, so that others on the machine do not count.
  const auto milliseconds_since = [](std::clock_t start) {
    return 1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  std::clock_t start = std::clock();
  const auto tokenizer = tandem::load_tokenizer(path);
  const double load = milliseconds_since(start);
  const std::vector<std::string> texts = read_texts();
  double best = 1e300;
  size_t ids = 0;
  for (int round = 0; round < 5; ++round) {
    start = std::clock();
    for (const std::string& text : texts) ids += tokenizer->encode(text).size();
    best = std::min(best, milliseconds_since(start));
  }
  fmt::print("{:.3f} us a text, {:.1f} ms to load, {} ids\n",
             1000 * best / static_cast<double>(std::max<size_t>(texts.size(), 1)), load, ids / 5);
}

int64_t number(const std::string& word) {
  const auto value = tandem::parse_int(word);
  if (!value) throw Error(ErrorKind::usage, fmt::format("`{}` is no whole number", word));
  return *value;
}

void run(const std::vector<std::string>& words) {
  const std::string mode = words.empty() ? "" : words[0];
  if (mode == "encode" && words.size() == 2) {
    const auto tokenizer = tandem::load_tokenizer(words[1]);
    for (const std::string& text : read_texts()) {
      fmt::print("{}\n", json(tokenizer->encode(text)).dump());
    }
  } else if (mode == "decode" && words.size() == 2) {
    const auto tokenizer = tandem::load_tokenizer(words[1]);
    for (const json& ids : read_lines()) {
      fmt::print("{}\n",
                 json(tokenizer->decode(ids.get<std::vector<int32_t>>())).dump(-1, ' ', true));
    }
  } else if (mode == "train" && words.size() == 2) {
    fmt::print("{}", tandem::train_bpe(read_texts(), {.vocabulary_size = number(words[1])}));
  } else if (mode == "extend" && words.size() == 3) {
    fmt::print("{}", tandem::extend_vocabulary(tandem::read_file(words[1]), read_texts(),
                                               number(words[2])));
  } else if (mode == "time" && words.size() == 2) {
    time_encoding(words[1]);
  } else {
    throw Error(ErrorKind::usage,
                "use: tokenize_tool encode|decode|time FILE, train SIZE, "
                "extend FILE EXTRA");
  }
}

}  // namespace

int main(int count, char** words) {
  try {
    run({words + 1, words + count});
    return 0;
  } catch (const std::exception& error) {
    const tandem::Explanation why = tandem::explain(error);
    fmt::print(stderr, "tokenize_tool: error: {}\n", why.sentence);
    return tandem::exit_code(why.kind);
  }
}
