// Runs a libFuzzer target without libFuzzer, for a moment in every `make test`: all inputs of a
// corpus folder, then as many mutations of them as asked for, always the same ones. The long hunt
// is `make fuzz`.
//
//   fuzz_wav_short CORPUS MUTATIONS
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "util/counted_random.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

// One to four changes: a byte, a run of bytes gone, a run twice, an end cut off, a part of another
// input.
std::string mutate(std::string input, const std::vector<std::string>& corpus, uint64_t number) {
  uint64_t draws = 0;
  const auto below = [&](uint64_t bound) {
    return bound == 0 ? 0 : tandem::counted_below(bound, 1, "mutation", number, draws++);
  };
  for (uint64_t change = 0, changes = 1 + below(4); change < changes; ++change) {
    const size_t at = below(input.size() + 1),
                 length = below(std::min<size_t>(64, input.size() - at) + 1);
    switch (below(6)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(below(256));
        break;
      case 1:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
        break;
      case 2: input.erase(at, length); break;
      case 3: input.insert(at, input.substr(at, length)); break;
      case 4: input.resize(at); break;
      case 5: {
        const std::string& other = corpus[below(corpus.size())];
        const size_t from = below(other.size() + 1);
        input.insert(at, other.substr(from, below(256)));
      }
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::vector<std::string> corpus;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ostringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    corpus.push_back(text.str());
    run(corpus.back());
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "`%s` holds no input\n", argv[1]);
    return 1;
  }
  run("");
  const auto mutations = static_cast<uint64_t>(std::atoll(argv[2]));
  for (uint64_t i = 0; i < mutations; ++i) run(mutate(corpus[i % corpus.size()], corpus, i));
  std::printf("%zu inputs and %llu mutations\n", corpus.size(),
              static_cast<unsigned long long>(mutations));
}
