#include "checkpoint/zip_archive.h"

#include <gtest/gtest.h>

#include "checkpoint/pth_bytes.h"
#include "checkpoint/tensor_file.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

std::string refusal(const std::string& bytes) {
  const Thrown thrown = thrown_by([&] { open_tensor_bytes(bytes, "f"); });
  EXPECT_EQ(thrown.kind, "corrupt") << thrown.sentence;
  const std::string opening = "`f` is not a valid .pth file: ";
  EXPECT_TRUE(thrown.sentence.starts_with(opening)) << thrown.sentence;
  return thrown.sentence.substr(std::min(opening.size(), thrown.sentence.size()));
}

const Member pickle{"a/data.pkl", pickle_of("}")};

std::string refusal_of_member(const Member& member) { return refusal(zip_of({pickle, member})); }

}  // namespace

TEST(ZipArchive, FindsItsMembers) {
  const std::string bytes = zip_of({pickle, {"a/data/0", "12345678"}});
  const auto source = bytes_in_memory(bytes, "f");
  const ZipArchive archive(*source);
  ASSERT_EQ(archive.members().size(), 2u);
  ASSERT_NE(archive.find("a/data/0"), nullptr);
  EXPECT_EQ(source->read(archive.find("a/data/0")->offset, archive.find("a/data/0")->size),
            "12345678");
  EXPECT_EQ(archive.find("a/data/1"), nullptr);
}

TEST(ZipArchive, RefusesEveryTruncation) {
  const std::string whole = pth_of(TensorSteps{});
  for (size_t size = 4; size < whole.size(); ++size)
    EXPECT_EQ(thrown_by([&] { open_tensor_bytes(whole.substr(0, size), "f"); }).kind, "corrupt")
        << size;
  EXPECT_EQ(refusal(whole.substr(0, whole.size() - 1)),
            "its zip archive has no end: the file is cut off");
}

TEST(ZipArchive, RefusesNamesThatLeadOut) {
  for (const char* name : {"../evil", "a/../../evil", "/etc/passwd", "a//b", "a/./b", "a\\..\\b",
                           "a/..", "..", "a/"}) {
    const std::string sentence = refusal_of_member({name, "x"});
    EXPECT_TRUE(sentence.ends_with("has a name that leads out of the archive"))
        << name << ": " << sentence;
  }
}

TEST(ZipArchive, RefusesMembersThatShareANameOrBytes) {
  EXPECT_EQ(refusal_of_member({"a/data.pkl", pickle_of("}")}), "it has two members `a/data.pkl`");
  // Both entries point at the first member's header, whose name fits one of them only.
  EXPECT_EQ(refusal_of_member({.name = "a/data/0", .bytes = "x", .offset_in_directory = 0}),
            "the header of its member `a/data/0` is not its own");
  // A storage that lies inside another: its header is part of the other's bytes.
  const std::string inner = zip_of({{"a/data/1", "abcd"}});
  const std::string file = zip_of({pickle,
                                   {"a/data/0", inner},
                                   {.name = "a/data/1",
                                    .bytes = "abcd",
                                    .offset_in_directory = static_cast<int64_t>(
                                        30 + pickle.name.size() + pickle.bytes.size() + 30 + 8)}});
  EXPECT_EQ(refusal(file), "its member `a/data/1` overlaps the one before it");
}

TEST(ZipArchive, RefusesSizesThatContradictEachOther) {
  EXPECT_EQ(refusal_of_member({.name = "a/data/0", .bytes = "1234", .size_in_directory = 3}),
            "the header of its member `a/data/0` gives another size");
  EXPECT_EQ(refusal_of_member(
                {.name = "a/data/0", .bytes = "1234", .flags = 8, .size_in_directory = 1000}),
            "the header of its member `a/data/0` gives another size");
  EXPECT_EQ(refusal_of_member({.name = "a/data/0", .bytes = "1234", .local_name = "a/data/1"}),
            "the header of its member `a/data/0` is not its own");
  EXPECT_EQ(
      refusal_of_member({.name = "a/data/0", .bytes = "1234", .offset_in_directory = 1'000'000}),
      "its member `a/data/0` lies outside the file");
  EXPECT_EQ(refusal_of_member(
                {.name = "a/data/0", .bytes = "", .flags = 8, .size_in_directory = 1'000'000}),
            "its member `a/data/0` reaches into the archive's directory");
}

TEST(ZipArchive, RefusesWhatPyTorchDoesNotWrite) {
  EXPECT_EQ(refusal_of_member({.name = "a/data/0", .bytes = "1234", .method = 8}),
            "its member `a/data/0` is compressed; PyTorch stores members as they are");
  EXPECT_EQ(refusal_of_member({.name = "a/data/0", .bytes = "1234", .flags = 1}),
            "its member `a/data/0` is encrypted");
  EXPECT_EQ(refusal_of_member({"b/data/0", "1234"}), "its archive is none that PyTorch wrote");
  EXPECT_EQ(refusal(zip_of({{"data.pkl", "x"}})), "its archive is none that PyTorch wrote");
  EXPECT_EQ(refusal(zip_of({{"a/other", "x"}})), "its archive has no `data.pkl`");
  EXPECT_EQ(refusal_of_member({"a/constants.pkl", "x"}),
            "it is a TorchScript program, not a checkpoint");
  EXPECT_EQ(refusal_of_member({"a/byteorder", "big"}),
            "its numbers are in `big` byte order; only little is read");
}

TEST(ZipArchive, RefusesADirectoryThatIsNotWhereItSays) {
  std::string file = pth_of(TensorSteps{});
  const std::string good = file;
  const size_t end = file.size() - 22;
  file[end + 10] = 9;  // members
  EXPECT_EQ(refusal(file), "its zip directory of 222 bytes claims 9 members");
  file = good;
  file[file.find("PK\x01\x02") + 2] = 9;
  EXPECT_EQ(refusal(file), "its zip directory is damaged");
  file = good;
  file[end + 16] = static_cast<char>(file[end + 16] + 1);  // its place
  EXPECT_EQ(refusal(file), "its zip directory is not where the end of the file says");
  file = good;
  file[end + 10] = file[end + 11] = '\xff';
  EXPECT_EQ(refusal(file), "its zip64 directory is missing");
  file = good;
  file[end + 4] = 1;
  EXPECT_EQ(refusal(file), "its zip archive is one of several parts");
  file = good;
  file[end + 10] = 3;
  EXPECT_EQ(refusal(file), "its zip directory holds more than its members");
}

}  // namespace tandem::tests
