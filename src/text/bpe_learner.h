// Learns merges: counts neighbouring pairs in words and joins the most frequent one, again and
// again. Counts are kept up to date by touching only the words a merge changes. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tandem {

class BpeLearner {
 public:
  struct Pair {
    int32_t left = 0, right = 0;
    bool operator==(const Pair&) const = default;
    auto operator<=>(const Pair&) const = default;
  };
  struct Join {
    Pair pair;
    int64_t count = 0;
  };

  // Symbols are ids, or `gap` where nothing can be joined (an unknown character).
  static constexpr int32_t gap = -1;
  void add_word(std::vector<int32_t> symbols, int64_t count);

  // The pair with the highest count, of equal ones the smaller; nothing when all that are left
  // were refused or are rarer than `smallest_count`.
  std::optional<Join> best(int64_t smallest_count);
  void refuse(const Pair& pair);  // never offered again
  void join(const Pair& pair, int32_t made_id);

 private:
  struct Hash {
    size_t operator()(const Pair& pair) const {
      const auto left = static_cast<uint32_t>(pair.left), right = static_cast<uint32_t>(pair.right);
      return (uint64_t{left} << 32 | right) * 0x9E3779B97F4A7C15U >> 16;
    }
  };
  struct Word {
    std::vector<int32_t> symbols;
    int64_t count = 0;
  };
  struct Seen {
    int64_t count = 0;
    std::vector<uint32_t> words;  // where it is or was; may name a word twice
    bool refused = false;
  };
  struct Candidate {
    int64_t count;
    Pair pair;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : other.pair < pair;
    }
  };

  void change(const Pair& pair, int64_t by, uint32_t word);
  void start();

  std::vector<Word> words_;
  std::unordered_map<Pair, Seen, Hash> pairs_;
  std::vector<Candidate> heap_;  // counts may be out of date; checked when taken
  bool started_ = false;
};

// Words and how often they are in the texts, sorted: so that nothing depends on hashing.
std::vector<std::pair<std::string, int64_t>> count_words(
    const std::vector<std::string>& texts,
    const std::function<void(const std::string&, std::vector<std::string>&)>& cut);

}  // namespace tandem
