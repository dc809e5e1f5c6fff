#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "checkpoint/tensor_file.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

using Random = std::mt19937;

void mutate(std::string& file, Random& random) {
  if (file.empty()) return;
  const size_t place = random() % file.size();
  switch (random() % 6) {
    case 0: file[place] = static_cast<char>(file[place] ^ (1 << random() % 8)); break;
    case 1: file[place] = static_cast<char>(random()); break;
    case 2: file.resize(place); break;
    case 3: file.erase(place, 1 + random() % 16); break;
    case 4: file.insert(place, file.substr(random() % file.size(), random() % 64)); break;
    case 5: {  // a length or an offset
      const uint64_t numbers[] = {0, 1, 0xffff, 0xffffffff, uint64_t{1} << 62, UINT64_MAX};
      const uint64_t number = numbers[random() % std::size(numbers)];
      const size_t size = std::min<size_t>(size_t{1} << random() % 4, file.size() - place);
      std::memcpy(file.data() + place, &number, size);
    }
  }
}

void fuzz(const std::string& name, unsigned seed) {
  const std::string whole = contents(TANDEM_SOURCE_DIR "/tests/checkpoint/fixtures/" + name);
  ASSERT_FALSE(whole.empty());
  Random random(seed);
  int read = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole;
    for (unsigned hurts = 1 + random() % 3; hurts > 0; --hurts) mutate(bytes, random);
    const Thrown thrown = thrown_by([&] {
      const auto file = open_tensor_bytes(bytes, "f");
      for (const TensorEntry& entry : file->entries()) file->read(entry.name);
    });
    ASSERT_TRUE(thrown.kind == "nothing" || thrown.kind == "corrupt")
        << "round " << round << ": " << thrown.kind << ": " << thrown.sentence;
    ++(thrown.kind == "nothing" ? read : refused);
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(read, 10) << "hurts of the data alone are not seen";
}

}  // namespace

TEST(PthFuzz, DamagedFilesAreReadOrRefusedAsCorrupt) {
  fuzz("kinds.pth", 1);
  fuzz("kinds_protocol5.pth", 2);
  fuzz("trainer.pth", 3);
}

TEST(PthFuzz, DamagedFilesOfTheOldFormatAreReadOrRefusedAsCorrupt) {
  fuzz("kinds_legacy.pth", 4);
  fuzz("bare_legacy.pth", 5);
}

}  // namespace tandem::tests
