#include <gtest/gtest.h>

#include <random>

#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_bytes.h"
#include "tandem/error.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

using Random = std::mt19937;

std::string whole_file() {
  return format_safetensors({{"weight", at::arange(6, at::kFloat).view({2, 3})},
                             {"half", at::ones({3}, at::kBFloat16)},
                             {"none", at::empty({0, 4})},
                             {"flag", at::ones({}, at::kBool)}},
                            {{"format", "pt"}});
}

// One hurt of the kinds files suffer or attackers try.
void mutate(std::string& file, Random& random) {
  static const char* const words[] = {"18446744073709551615",
                                      "9223372036854775807",
                                      "-1",
                                      "0",
                                      "1e400",
                                      "[",
                                      "]",
                                      "{",
                                      "}",
                                      "\"",
                                      ",",
                                      ":",
                                      "null",
                                      "F64",
                                      "\\u0000",
                                      "\xff",
                                      "__metadata__",
                                      "4294967296"};
  if (file.empty()) return;
  const size_t place = random() % file.size();
  switch (random() % 7) {
    case 0: file[place] = static_cast<char>(file[place] ^ (1 << random() % 8)); break;
    case 1: file[place] = static_cast<char>(random()); break;
    case 2: file.resize(place); break;
    case 3: file.insert(place, words[random() % std::size(words)]); break;
    case 4: file.erase(place, 1 + random() % 16); break;
    case 5: file.insert(place, file.substr(random() % file.size(), random() % 64)); break;
    case 6: {
      const std::string word = words[random() % std::size(words)];
      file.replace(place, std::min(word.size(), file.size() - place), word);
    }
  }
}

// Puts the right length in front again, so that the hurt reaches the header's checks.
void repair_length(std::string& file, size_t data_bytes) {
  if (file.size() < 8 + data_bytes) return;
  const uint64_t length = file.size() - 8 - data_bytes;
  std::memcpy(file.data(), &length, 8);
}

void fuzz(unsigned seed, bool repair) {
  const std::string whole = whole_file();
  uint64_t header = 0;
  std::memcpy(&header, whole.data(), 8);
  const size_t data = whole.size() - 8 - header;
  Random random(seed);
  int read = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string file = whole;
    for (unsigned hurts = 1 + random() % 3; hurts > 0; --hurts) mutate(file, random);
    if (repair) repair_length(file, data);
    const Thrown thrown = thrown_by([&] { parse_safetensors(file, "f"); });
    ASSERT_TRUE(thrown.kind == "nothing" || thrown.kind == "corrupt")
        << "round " << round << ": " << thrown.kind << ": " << thrown.sentence;
    ++(thrown.kind == "nothing" ? read : refused);
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(read, 10) << "hurts of the data alone are not seen";
}

}  // namespace

TEST(SafetensorsFuzz, DamagedFilesAreReadOrRefusedAsCorrupt) { fuzz(1, false); }

TEST(SafetensorsFuzz, DamagedHeadersAreReadOrRefusedAsCorrupt) { fuzz(2, true); }

TEST(SafetensorsFuzz, EveryTruncationIsRefused) {
  const std::string whole = whole_file();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(thrown_by([&] { parse_safetensors(whole.substr(0, size), "f"); }).kind, "corrupt")
        << size;
  }
}

}  // namespace tandem::tests
