// The format from before zip archives, damaged on purpose.
#include <gtest/gtest.h>

#include "checkpoint/pth_bytes.h"
#include "checkpoint/tensor_file.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

struct Parts {
  std::string magic = pickle_of("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19");
  std::string version = pickle_of("M\xe9\x03");
  std::string machine = pickle_of("}" + text_step("little_endian") + "\x88s");
  std::string content = tensor("N");
  std::string keys = pickle_of("](" + text_step("0") + "e");
  std::string storages = raw<int64_t>(4) + std::string(16, 'x');

  static std::string tensor(const std::string& view) {
    return pickle_of("ctorch._utils\n_rebuild_tensor_v2\n((" + text_step("storage") +
                     "ctorch\nFloatStorage\n" + text_step("0") + text_step("cpu") + "K\x04" + view +
                     "tQK" + std::string(1, '\0') + tuple_step({2}) + tuple_step({1}) +
                     "\x89"
                     "ccollections\nOrderedDict\n)RtR");
  }
  std::string file() const { return magic + version + machine + content + keys + storages; }
};

std::string refusal(const Parts& parts) {
  const std::string bytes = parts.file();
  const Thrown thrown = thrown_by([&] { open_tensor_bytes(bytes, "f"); });
  EXPECT_EQ(thrown.kind, "corrupt") << thrown.sentence;
  const std::string opening = "`f` is not a valid .pth file: ";
  EXPECT_TRUE(thrown.sentence.starts_with(opening)) << thrown.sentence;
  return thrown.sentence.substr(std::min(opening.size(), thrown.sentence.size()));
}

// A part of a storage, as (key, offset, elements).
std::string view(int64_t offset, int64_t elements) {
  return "(" + text_step("1") + number_step(offset) + number_step(elements) + "t";
}

}  // namespace

TEST(PthLegacy, AHandMadeFileIsRead) {
  const std::string bytes = Parts{}.file();
  EXPECT_EQ(open_tensor_bytes(bytes, "f")->read("tensor").numel(), 2);
}

TEST(PthLegacy, ReadsAViewOfAStorage) {
  Parts parts;
  parts.content = Parts::tensor(view(1, 2));
  parts.storages = raw<int64_t>(4) + raw(1.0f) + raw(2.0f) + raw(3.0f) + raw(4.0f);
  const std::string bytes = parts.file();
  const at::Tensor read = open_tensor_bytes(bytes, "f")->read("tensor");
  EXPECT_EQ(read[0].item<float>(), 2.0f);
  EXPECT_EQ(read[1].item<float>(), 3.0f);
}

TEST(PthLegacy, RefusesWhatIsNotItsFormat) {
  EXPECT_EQ(refusal({.magic = pickle_of("K\x01")}),
            "it is a pickle, but not one that PyTorch wrote");
  EXPECT_EQ(refusal({.version = pickle_of("K\x01")}), "its version is none that is known");
  EXPECT_EQ(refusal({.machine = pickle_of("N")}), "what it says of its machine is damaged");
  EXPECT_EQ(refusal({.machine = pickle_of("}" + text_step("little_endian") + "\x89s")}),
            "its numbers are in `big` byte order; only little is read");
  EXPECT_EQ(refusal({.keys = pickle_of("N")}), "its list of storages is damaged");
  EXPECT_EQ(refusal({.keys = pickle_of("](Ne")}), "its list of storages is damaged");
}

TEST(PthLegacy, RefusesStoragesThatDoNotFit) {
  EXPECT_EQ(refusal({.storages = ""}), "its storages are cut off");
  EXPECT_EQ(refusal({.storages = raw<int64_t>(4) + "xxxx"}), "its storages are cut off");
  EXPECT_EQ(refusal({.storages = raw<int64_t>(-1) + std::string(16, 'x')}),
            "its storages are cut off");
  EXPECT_EQ(refusal({.storages = raw<int64_t>(int64_t{1} << 62) + std::string(16, 'x')}),
            "its storages are cut off");
  EXPECT_EQ(refusal({.storages = raw<int64_t>(3) + std::string(12, 'x')}),
            "the storage of its tensor `tensor` has 12 bytes, where 16 were expected");
  EXPECT_EQ(refusal({.storages = raw<int64_t>(4) + std::string(17, 'x')}),
            "it holds more than its storages");
  EXPECT_EQ(refusal({.keys = pickle_of("](" + text_step("7") + "e")}),
            "nothing says what its storage `7` holds");
  EXPECT_EQ(refusal({.keys = pickle_of("]"), .storages = ""}),
            "the storage `0` of its tensor `tensor` is missing");
  EXPECT_EQ(refusal({.keys = pickle_of("](" + text_step("0") + text_step("0") + "e"),
                     .storages = raw<int64_t>(4) + std::string(16, 'x') + raw<int64_t>(0)}),
            "it has two storages `0`");
}

TEST(PthLegacy, RefusesAViewOutsideItsStorage) {
  const std::string sentence = "the view of its tensor `tensor` reaches outside its storage";
  EXPECT_EQ(refusal({.content = Parts::tensor(view(3, 2))}), sentence);
  EXPECT_EQ(refusal({.content = Parts::tensor(view(INT64_MAX, 2))}), sentence);
  EXPECT_EQ(refusal({.content = Parts::tensor(view(3, 1))}),
            "its tensor `tensor` reaches outside its storage of 16 bytes");
}

TEST(PthLegacy, RefusesEveryTruncation) {
  const std::string whole = Parts{}.file();
  for (size_t size = 2; size < whole.size(); ++size)
    EXPECT_EQ(thrown_by([&] { open_tensor_bytes(whole.substr(0, size), "f"); }).kind, "corrupt")
        << size;
}

}  // namespace tandem::tests
