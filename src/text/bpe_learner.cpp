#include "text/bpe_learner.h"

#include <algorithm>

namespace tandem {

void BpeLearner::add_word(std::vector<int32_t> symbols, int64_t count) {
  if (symbols.size() > 1) words_.push_back({std::move(symbols), count});
}

void BpeLearner::change(const Pair& pair, int64_t by, uint32_t word) {
  if (pair.left == gap || pair.right == gap) return;
  Seen& seen = pairs_[pair];
  seen.count += by;
  if (by > 0 && (seen.words.empty() || seen.words.back() != word)) seen.words.push_back(word);
}

void BpeLearner::start() {
  started_ = true;
  for (uint32_t i = 0; i < words_.size(); ++i) {
    const Word& word = words_[i];
    for (size_t k = 0; k + 1 < word.symbols.size(); ++k) {
      change({word.symbols[k], word.symbols[k + 1]}, word.count, i);
    }
  }
  heap_.reserve(pairs_.size());
  for (const auto& [pair, seen] : pairs_) heap_.push_back({seen.count, pair});
  std::make_heap(heap_.begin(), heap_.end());
}

std::optional<BpeLearner::Join> BpeLearner::best(int64_t smallest_count) {
  if (!started_) start();
  while (!heap_.empty()) {
    const Candidate top = heap_.front();
    const auto found = pairs_.find(top.pair);
    const bool usable = found != pairs_.end() && !found->second.refused;
    if (usable && found->second.count == top.count) {
      if (top.count < smallest_count || top.count < 1) return std::nullopt;
      return Join{top.pair, top.count};
    }
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    if (usable && found->second.count < top.count) {
      heap_.push_back({found->second.count, top.pair});
      std::push_heap(heap_.begin(), heap_.end());
    }
  }
  return std::nullopt;
}

void BpeLearner::refuse(const Pair& pair) { pairs_[pair].refused = true; }

void BpeLearner::join(const Pair& pair, int32_t made_id) {
  const auto found = pairs_.find(pair);
  if (found == pairs_.end()) return;
  std::vector<uint32_t> places = std::move(found->second.words);
  pairs_.erase(found);
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  std::vector<Pair> grown;
  for (const uint32_t place : places) {
    Word& word = words_[place];
    std::vector<int32_t>& symbols = word.symbols;
    size_t out = 0;
    for (size_t i = 0; i < symbols.size(); ++i) {
      const bool here =
          i + 1 < symbols.size() && symbols[i] == pair.left && symbols[i + 1] == pair.right;
      if (!here) {
        symbols[out++] = symbols[i];
        continue;
      }
      if (out > 0) {
        const int32_t before = symbols[out - 1];
        if (Pair{before, pair.left} != pair) change({before, pair.left}, -word.count, place);
        change({before, made_id}, word.count, place);
        grown.push_back({before, made_id});
      }
      if (i + 2 < symbols.size()) {
        const int32_t after = symbols[i + 2];
        if (Pair{pair.right, after} != pair) change({pair.right, after}, -word.count, place);
        change({made_id, after}, word.count, place);
        grown.push_back({made_id, after});
      }
      symbols[out++] = made_id;
      ++i;
    }
    symbols.resize(out);
  }
  std::sort(grown.begin(), grown.end());
  grown.erase(std::unique(grown.begin(), grown.end()), grown.end());
  for (const Pair& made : grown) {
    const auto seen = pairs_.find(made);
    if (seen == pairs_.end() || seen->second.count < 1) continue;
    heap_.push_back({seen->second.count, made});
    std::push_heap(heap_.begin(), heap_.end());
  }
}

std::vector<std::pair<std::string, int64_t>> count_words(
    const std::vector<std::string>& texts,
    const std::function<void(const std::string&, std::vector<std::string>&)>& cut) {
  std::unordered_map<std::string, int64_t> counts;
  std::vector<std::string> words;
  for (const std::string& text : texts) {
    words.clear();
    cut(text, words);
    for (std::string& word : words) ++counts[std::move(word)];
  }
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace tandem
