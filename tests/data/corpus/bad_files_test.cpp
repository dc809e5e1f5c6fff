#include "data/corpus/bad_files.h"

#include <gtest/gtest.h>

namespace tandem {

TEST(BadFiles, SayWhatToDoAboutThem) {
  BadFiles bad("", 100, {});
  bad.add(1, "a.wav", "missing", "it is not there");
  EXPECT_EQ(bad.advice(), "is the dataset still where it was prepared?");
  bad.add(2, "b.wav", "changed", "its time changed");
  EXPECT_EQ(bad.advice(),
            "mend the files, run `tandem prepare` again, or raise data.max_bad_share");
  bad.add(3, "c.wav", "changed", "its time changed");
  EXPECT_EQ(bad.advice(),
            "they changed since they were prepared, or were copied without their times: prepare "
            "the dataset again");
}

}  // namespace tandem
