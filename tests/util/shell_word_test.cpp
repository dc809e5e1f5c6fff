#include "util/shell_word.h"

#include <gtest/gtest.h>

namespace tandem::tests {

TEST(ShellWord, QuotesWhatAShellWouldTakeApart) {
  EXPECT_EQ(shell_word("runs/a-2_x.y"), "runs/a-2_x.y");
  EXPECT_EQ(shell_word("my runs/a"), "'my runs/a'");
  EXPECT_EQ(shell_word("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace tandem::tests
