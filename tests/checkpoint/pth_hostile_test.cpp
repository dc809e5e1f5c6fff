// Files that want to do harm: run something, take all memory, read what is not theirs.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "checkpoint/pth_bytes.h"
#include "checkpoint/tensor_file.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

const std::string fixtures = TANDEM_SOURCE_DIR "/tests/checkpoint/fixtures/";

// What follows the name of the file; fails unless it is Error(corrupt).
std::string refusal(const std::string& bytes) {
  const Thrown thrown = thrown_by([&] { open_tensor_bytes(bytes, "f"); });
  EXPECT_EQ(thrown.kind, "corrupt") << thrown.sentence;
  const std::string opening = "`f` is not a valid .pth file: ";
  EXPECT_TRUE(thrown.sentence.starts_with(opening)) << thrown.sentence;
  return thrown.sentence.substr(std::min(opening.size(), thrown.sentence.size()));
}

std::string refusal_of_steps(const std::string& steps) { return refusal(pth_of(steps)); }

bool accepted(const std::string& bytes) {
  return thrown_by([&] { open_tensor_bytes(bytes, "f"); }).sentence.empty();
}

int64_t peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

TEST(PthHostile, AHandMadeFileIsRead) {
  const std::string bytes = pth_of(TensorSteps{});
  EXPECT_EQ(open_tensor_bytes(bytes, "f")->read("t").numel(), 4);
}

TEST(PthHostile, RefusesAPickleThatWouldRunACommand) {
  const TestFolder folder;
  std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  for (const char* name : {"system", "popen", "eval", "getattr", "legacy"}) {
    const Thrown thrown = thrown_by([&] { open_tensor_file(fixtures + "trap_" + name + ".pth"); });
    EXPECT_EQ(thrown.kind, "corrupt") << name;
    EXPECT_TRUE(contains(thrown.sentence, "its pickle would call `")) << thrown.sentence;
    EXPECT_EQ(thrown.hint, "the file is damaged or hostile; nothing in it was executed");
  }
  std::filesystem::current_path(before);
  EXPECT_FALSE(std::filesystem::exists(folder / "tandem_pickle_was_run"));
}

TEST(PthHostile, RefusesEveryWayToCall) {
  const std::string word = "its pickle would call `posix.system`, which no checkpoint needs";
  const std::string argument = text_step("true") + "\x85";
  EXPECT_EQ(refusal_of_steps("cposix\nsystem\n" + argument + "R"), word);
  EXPECT_EQ(refusal_of_steps(text_step("posix") + text_step("system") + "\x93" + argument + "R"),
            word);
  EXPECT_EQ(refusal_of_steps("cposix\nsystem\n" + argument + "\x81"), word);        // NEWOBJ
  EXPECT_EQ(refusal_of_steps("cposix\nsystem\n" + argument + "}" + "\x92"), word);  // NEWOBJ_EX
  EXPECT_EQ(refusal_of_steps("ccopyreg\n_reconstructor\ncsubprocess\nPopen\n\x85R"),
            "its pickle would make a `subprocess.Popen`, which no checkpoint needs");
  EXPECT_EQ(refusal_of_steps("cmine\nfunction\n)R"),
            "its pickle would call `mine.function`, which no checkpoint needs");
  for (const char* step : {"iposix\nsystem\n", "o", "P1\n", "I1\n", "S'x'\n", "\x82\x01", "\x97"})
    EXPECT_TRUE(refusal_of_steps(std::string("(") + step).starts_with("its pickle holds the step"))
        << step;
}

TEST(PthHostile, KeepsControlCharactersOutOfItsSentences) {
  const std::string sentence = refusal_of_steps("cos\n\x1b[31msystem\n)R");
  EXPECT_EQ(sentence, "its pickle would call `os.?[31msystem`, which no checkpoint needs");
}

TEST(PthHostile, RefusesABombOfNestedLists) {
  EXPECT_EQ(refusal_of_steps(std::string(100, ']') + std::string(99, 'a')),
            "its values are nested deeper than 64");
  const int64_t before = peak_kib();
  EXPECT_EQ(refusal_of_steps(std::string(1'000'000, ']') + std::string(999'999, 'a')),
            "its values are nested deeper than 64");
  EXPECT_EQ(refusal_of_steps(std::string(5'000'000, ']')),
            "its pickle builds more than 2000000 values");
  EXPECT_LT(peak_kib() - before, 600 * 1024);
}

TEST(PthHostile, RefusesListsThatMultiplyThroughTheMemo) {
  // Each list holds the one before it ten times: 10^40 values in 900 bytes.
  std::string steps = "]q";
  steps += '\0';
  for (char level = 1; level <= 40; ++level) {
    steps += "](";
    for (int i = 0; i < 10; ++i) (steps += 'h') += static_cast<char>(level - 1);
    (steps += "eq") += level;
  }
  const std::string sentence = refusal_of_steps("(" + steps + "t");
  EXPECT_EQ(sentence, "its pickle describes far more than the file holds");
  // A list that holds itself.
  EXPECT_EQ(refusal_of_steps(std::string("]q\0h\0a", 6)), "its values are nested deeper than 64");
  // One long list, copied into dictionaries again and again.
  std::string pairs = "](";
  for (int i = 0; i < 1000; ++i) pairs += "NN\x86";
  std::string copies = std::string("ccollections\nOrderedDict\nq\1") + pairs + "e\x85q\2";
  for (int i = 0; i < 20000; ++i) copies += "h\1h\2R0";
  EXPECT_EQ(refusal_of_steps(copies), "its pickle copies its own lists again and again");
}

TEST(PthHostile, RefusesATensorThatClaimsTooMuch) {
  EXPECT_EQ(refusal(pth_of(TensorSteps{.elements = int64_t{1} << 60, .shape = {int64_t{1} << 60}})),
            "its tensors claim far more than the file's 594 bytes");
  EXPECT_EQ(refusal(pth_of(TensorSteps{.elements = int64_t{1} << 60})),
            "the storage of its tensor `t` has 16 bytes, where 4611686018427387904 were expected");
  EXPECT_EQ(refusal(pth_of(TensorSteps{.elements = INT64_MAX})),
            "the storage of its tensor `t` is too large to exist");
  EXPECT_EQ(refusal(pth_of(
                TensorSteps{.shape = {int64_t{1} << 40, int64_t{1} << 40}, .strides = {0, 0}})),
            "its tensor `t` has a shape too large to exist");
  EXPECT_EQ(refusal(pth_of(TensorSteps{.shape = {int64_t{1} << 62, 0}, .strides = {1, 1}})),
            "its tensor `t` has a shape too large to exist");
  // One element seen 2^36 times.
  EXPECT_TRUE(refusal(pth_of(TensorSteps{.shape = {int64_t{1} << 36}, .strides = {0}}))
                  .starts_with("its tensors claim far more than the file's "));
  EXPECT_TRUE(accepted(pth_of(TensorSteps{.shape = {1000}, .strides = {0}})));
}

TEST(PthHostile, RefusesATensorThatReachesOutsideItsStorage) {
  const std::string outside = "its tensor `t` reaches outside its storage of 16 bytes";
  EXPECT_EQ(refusal(pth_of(TensorSteps{.offset = 1})), outside);
  EXPECT_EQ(refusal(pth_of(TensorSteps{.shape = {5}})), outside);
  EXPECT_EQ(refusal(pth_of(TensorSteps{.strides = {2}})), outside);
  EXPECT_EQ(refusal(pth_of(TensorSteps{.strides = {INT64_MAX}})), outside);
  EXPECT_EQ(refusal(pth_of(TensorSteps{.offset = INT64_MAX})), outside);
  EXPECT_EQ(refusal(pth_of(TensorSteps{.shape = {2, 2}, .strides = {INT64_MAX, INT64_MAX}})),
            outside);
  EXPECT_TRUE(accepted(pth_of(TensorSteps{.offset = INT64_MAX, .shape = {0}})));
  EXPECT_TRUE(accepted(pth_of(TensorSteps{.shape = {2, 2}, .strides = {1, 2}})));
}

TEST(PthHostile, RefusesATensorThatIsNone) {
  EXPECT_EQ(refusal(pth_of(TensorSteps{.offset = -1})),
            "its tensor `t` has an offset that is no size");
  EXPECT_EQ(refusal(pth_of(TensorSteps{.shape = {-1}})),
            "its tensor `t` has an extent that is no size");
  EXPECT_EQ(refusal(pth_of(TensorSteps{.strides = {-1}})),
            "its tensor `t` has a stride that is no size");
  EXPECT_EQ(refusal(pth_of(TensorSteps{.elements = -4})),
            "its tensor `t` has a storage that is no size");
  EXPECT_EQ(refusal(pth_of(TensorSteps{.shape = {2, 2}})),
            "its tensor `t` has 2 extents and 1 strides");
  EXPECT_EQ(refusal(pth_of(TensorSteps{.shape = std::vector<int64_t>(65, 1)})),
            "its tensor `t` has no proper shape");
  EXPECT_EQ(refusal(pth_of(TensorSteps{.key = "1"})),
            "the storage `1` of its tensor `t` is missing");
  EXPECT_EQ(refusal(pth_of(TensorSteps{.key = "../data.pkl"})),
            "the storage `../data.pkl` of its tensor `t` is missing");
  EXPECT_EQ(refusal(pth_of(TensorSteps{.elements = 3, .shape = {3}})),
            "the storage of its tensor `t` has 16 bytes, where 12 were expected");
  EXPECT_EQ(refusal_of_steps("ctorch._utils\n_rebuild_tensor_v2\n)R"),
            "its tensor `tensor` is described incompletely");
  EXPECT_EQ(refusal_of_steps("ctorch._utils\n_rebuild_tensor_v2\n(NNNNtR"),
            "its tensor `tensor` has no storage");
  EXPECT_EQ(refusal_of_steps("ctorch._utils\n_rebuild_tensor_v2\n((tQNNNtR"),
            "the storage of its tensor `tensor` is damaged");
}

TEST(PthHostile, RefusesPicklesThatAreBroken) {
  EXPECT_EQ(refusal(zip_of({{"a/data.pkl", "\x80\x02]"}})), "its pickle is cut off");
  EXPECT_EQ(refusal(zip_of({{"a/data.pkl", ""}})), "its pickle is cut off");
  EXPECT_EQ(refusal(zip_of({{"a/data.pkl", "\x80\x01]."}})),
            "its pickle does not begin with a protocol from 2 to 5");
  EXPECT_EQ(refusal_of_steps(""), "its pickle does not end with one value");
  EXPECT_EQ(refusal_of_steps("NN"), "its pickle does not end with one value");
  EXPECT_EQ(refusal_of_steps("0"), "its pickle takes a value from an empty stack");
  EXPECT_EQ(refusal_of_steps("t"), "its pickle goes back to a mark it never set");
  EXPECT_EQ(refusal_of_steps("h\x05"), "its pickle recalls a value it never remembered");
  EXPECT_EQ(refusal_of_steps("q\x05"), "its pickle remembers a value where there is none");
  EXPECT_EQ(refusal_of_steps("NNa"), "its pickle adds items to something that holds none");
  EXPECT_EQ(refusal_of_steps("}(Nu"), "its pickle has a key without a value");
  EXPECT_EQ(refusal_of_steps("N)R"), "its pickle calls a value that is no class or function");
  EXPECT_EQ(refusal_of_steps("ca\nB\nNR"),
            "its pickle calls something with arguments that are no tuple");
  EXPECT_EQ(refusal_of_steps("NNb"), "its pickle fills a value that is no object");
  EXPECT_EQ(refusal_of_steps("Nb"), "its pickle fills an object where there is none");
  EXPECT_EQ(refusal_of_steps("NQ"), "its pickle refers to something outside by no tuple");
  EXPECT_EQ(refusal_of_steps("NN\x93"), "its pickle names a class by something that is no text");
  EXPECT_EQ(refusal_of_steps("\x8b\xff\xff\xff\xff"),
            "its pickle holds a number of negative length");
  EXPECT_EQ(refusal_of_steps("c" + std::string(600, 'a') + "\nb\n"),
            "its pickle names a class with more than 512 letters");
  EXPECT_EQ(refusal_of_steps("ctorch\nSize\n)R"), "its pickle makes a `torch.Size` of nothing");
  EXPECT_EQ(refusal_of_steps("ccollections\nOrderedDict\nN\x85R"),
            "its pickle makes a dictionary of something that is no list");
  EXPECT_EQ(refusal_of_steps("ccollections\nOrderedDict\n](Ne\x85R"),
            "its pickle makes a dictionary of something that is no pair");
  EXPECT_EQ(refusal_of_steps("X\xff\xff\xff\xff"), "its pickle is cut off");
  EXPECT_EQ(refusal_of_steps("}" + text_step(std::string(2000, 'k')) + "Ns"),
            "its names are longer than 1024 letters");
  EXPECT_EQ(refusal_of_steps("}" + text_step("a/b") + TensorSteps{}.steps() + "s" + text_step("a") +
                             "}" + text_step("b") + TensorSteps{}.steps() + "ss"),
            "it has two tensors `a/b`");
}

}  // namespace tandem::tests
