// The bytes expected here were written by TensorBoard 2.21's own protocol buffers.
#include "observe/event_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>

#include "observe/crc32c.h"
#include "util/child.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

std::string hex_of(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return hex;
}

uint64_t little_endian(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    number |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << 8 * i;
  return number;
}

// The records of an event file; fails where a checksum is wrong or the end is cut.
std::vector<std::string> records_of(const std::filesystem::path& path) {
  std::string_view rest;
  const std::string all = contents(path);
  std::vector<std::string> records;
  for (rest = all; rest.size() >= 16;) {
    const uint64_t length = little_endian(rest.substr(0, 8));
    EXPECT_EQ(little_endian(rest.substr(8, 4)), masked_crc32c(rest.substr(0, 8)));
    EXPECT_LE(length + 16, rest.size());
    records.emplace_back(rest.substr(12, length));
    EXPECT_EQ(little_endian(rest.substr(12 + length, 4)), masked_crc32c(records.back()));
    rest.remove_prefix(length + 16);
  }
  EXPECT_TRUE(rest.empty());
  return records;
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

constexpr EventMoment seventh{1.5, 7};

}  // namespace

TEST(Crc32c, GivesTheChecksumsOfTheStandard) {
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);    // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);  // RFC 3720, B.4
  EXPECT_EQ(masked_crc32c("123456789"), 0xC78AB0E5U);
  EXPECT_EQ(masked_crc32c(""), 0xA282EAD8U);
}

TEST(EventProto, AScalarHasTheBytesThatTensorBoardWrites) {
  EXPECT_EQ(hex_of(scalar_event(seventh, "train/loss", 3.25)),
            "09000000000000f83f10072a290a270a0a747261696e2f6c6f7373420a080112002a04000050404a0d0a09"
            "0a077363616c6172732001");
}

TEST(EventProto, OtherEventsHaveTheBytesThatTensorBoardWrites) {
  EXPECT_EQ(hex_of(version_event(1.5)), "09000000000000f83f1a0d627261696e2e4576656e743a32");
  EXPECT_EQ(hex_of(start_event({1.5, 6})), "09000000000000f83f10063a020801");
  EXPECT_EQ(hex_of(text_event({1.5, 300}, "t", "hi")),
            "09000000000000f83f10ac022a1f0a1d0a0174420c0807120412020801420268694a0a0a060a0474657874"
            "2002");
  EXPECT_EQ(hex_of(image_event(seventh, "i", {.height = 2, .width = 3, .png = "png"})),
            "09000000000000f83f10072a120a100a0169220b0802100318032203706e67");
  EXPECT_EQ(hex_of(audio_event(seventh, "a", {.rate = 22050, .frames = 9, .wav = "wav"})),
            "09000000000000f83f10072a200a1e0a016132190d0044ac461001180922037761762a09617564696f2f77"
            "6176");
}

TEST(EventProto, NegativeNumbersTakeTenBytes) {
  EXPECT_EQ(hex_of(ProtoMessage().integer(2, -1).bytes()), "10ffffffffffffffffff01");
}

TEST(EventFile, ARecordHasLengthBytesAndBothChecksums) {
  EXPECT_EQ(hex_of(framed_record("abc")), "0300000000000000b099490e6162636e57f121");
}

TEST(EventFile, BeginsWithItsVersionAndAStart) {
  const TestFolder scratch;
  const EventFile events(scratch / "tensorboard", 0);
  const std::string name = events.path().filename().string();
  EXPECT_TRUE(name.starts_with("events.out.tfevents.1")) << name;
  EXPECT_TRUE(name.ends_with(fmt::format(".{}.tandem", getpid()))) << name;
  const auto records = records_of(events.path());  // there before anything was added
  ASSERT_EQ(records.size(), 2U);
  EXPECT_TRUE(
      records[0].ends_with("\x1A\x0D"
                           "brain.Event:2"));
  EXPECT_TRUE(hex_of(records[1]).ends_with("10013a020801")) << hex_of(records[1]);
}

TEST(EventFile, KeepsWhatIsAddedAtTheLatestWhenItEnds) {
  const TestFolder scratch;
  std::filesystem::path path;
  {
    EventFile events(scratch.path(), 0);
    path = events.path();
    events.scalar(1, "loss", 2);
    events.text(1, "said", "words");
    EXPECT_EQ(records_of(path).size(), 2U) << "not one system call a figure";
    events.flush();
    EXPECT_EQ(records_of(path).size(), 4U);
    events.scalar(2, "loss", NAN);
  }
  EXPECT_EQ(records_of(path).size(), 5U);
}

TEST(EventFile, ARunThatGoesOnOpensALaterFileThatTakesBackLaterSteps) {
  const TestFolder scratch;
  for (const int64_t first : {0, 20, 40}) EventFile(scratch.path(), first).scalar(first, "loss", 1);
  const auto files = files_in(scratch.path());  // all within a second
  ASSERT_EQ(files.size(), 3U);
  EXPECT_TRUE(hex_of(records_of(files[0])[1]).ends_with("10013a020801"));
  EXPECT_TRUE(hex_of(records_of(files[1])[1]).ends_with("10153a020801"));  // from step 21 on
  EXPECT_TRUE(hex_of(records_of(files[2])[1]).ends_with("10293a020801"));
}

TEST(EventFile, ThatCannotBeMadeIsAnIoError) {
  const TestFolder scratch;
  put(scratch / "plain", "");
  const Thrown thrown = thrown_by([&] { EventFile events(scratch / "plain" / "tb", 0); });
  EXPECT_EQ(thrown.kind, "io");
  EXPECT_TRUE(contains(thrown.sentence, (scratch / "plain" / "tb").string())) << thrown.sentence;
}

TEST(EventFile, ThatCannotGrowIsAnIoError) {
  const TestFolder scratch;
  const ChildEnd end = in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{400, 400};
    setrlimit(RLIMIT_FSIZE, &limit);
    EventFile events(scratch.path(), 0);
    const Thrown thrown = thrown_by([&] {
      events.text(1, "long", std::string(1000, 'x'));
      events.flush();
    });
    std::printf("%s|%s|%s", thrown.kind.c_str(), thrown.sentence.c_str(), thrown.hint.c_str());
  });
  EXPECT_TRUE(end.out.starts_with("io|cannot write `" + scratch.path().string())) << end.out;
  EXPECT_TRUE(end.out.ends_with(": File too large|is the disk full?")) << end.out;
}

}  // namespace tandem::tests
