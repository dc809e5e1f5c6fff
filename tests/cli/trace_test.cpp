#include <gtest/gtest.h>

#include "support/program.h"

namespace tandem {
namespace {

std::vector<std::string> complete(const std::string& model) {
  return {"trace", "xtts", "--model", model, "--voice", "v.wav", "--text", "a", "--out", "t.st"};
}

ProgramRun run_with(const std::vector<std::string>& more) {
  std::vector<std::string> words = complete("/no/such/model");
  words.insert(words.end(), more.begin(), more.end());
  return run_program(words);
}

bool says(const ProgramRun& run, const std::string& sentence) {
  return run.err.find(sentence) != std::string::npos;
}

}  // namespace

TEST(TraceProgram, AsksForWhatItNeeds) {
  const ProgramRun which = run_program({"trace"});
  EXPECT_EQ(which.code, 2);
  EXPECT_TRUE(says(which, "which model? expected `xtts`")) << which.err;
  const ProgramRun other = run_program({"trace", "bark"});
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(says(other, "tandem trace knows no `bark`; expected `xtts`")) << other.err;
  const ProgramRun bare = run_program({"trace", "xtts"});
  EXPECT_EQ(bare.code, 2);
  EXPECT_TRUE(says(bare, "tandem trace needs --model DIR, an XTTS folder")) << bare.err;
  const ProgramRun voiceless =
      run_program({"trace", "xtts", "--model", ".", "--text", "a", "--out", "t.st"});
  EXPECT_EQ(voiceless.code, 2);
  EXPECT_TRUE(says(voiceless, "tandem trace needs --voice FILE")) << voiceless.err;
}

TEST(TraceProgram, RefusesValuesWithoutAMeaning) {
  const ProgramRun style = run_with({"--compat", "tortoise"});
  EXPECT_EQ(style.code, 2);
  EXPECT_TRUE(says(style, "--compat is `tortoise`; expected `coqui` or `best`")) << style.err;
  const ProgramRun codes = run_with({"--max-codes", "many"});
  EXPECT_EQ(codes.code, 2);
  EXPECT_TRUE(says(codes, "--max-codes is `many`; expected a whole number")) << codes.err;
  const ProgramRun share = run_with({"--top-p", "half"});
  EXPECT_EQ(share.code, 2);
  EXPECT_TRUE(says(share, "--top-p is `half`; expected a number")) << share.err;
}

TEST(TraceProgram, AFolderThatIsNotThereIsAFileError) {
  const ProgramRun run = run_with({"--greedy"});
  EXPECT_EQ(run.code, 4);
  EXPECT_TRUE(says(run, "there is no model `/no/such/model`")) << run.err;
}

}  // namespace tandem
