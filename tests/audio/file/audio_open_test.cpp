#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "audio/file/wav_bytes.h"
#include "support/temporary_folder.h"
#include "util/child.h"

namespace tandem::tests {
namespace {

const std::vector<int16_t> three = {16384, -16384, 8192};
const std::vector<float> three_read = {0.5F, -0.5F, 0.25F};

Faulted open_fault(const AudioSource& source, const OpenOptions& options = {}) {
  return fault_of([&] { open_audio(source, options); });
}

TEST(AudioFile, NamesEveryFault) {
  EXPECT_STREQ(to_string(AudioFault::not_audio), "not audio");
  EXPECT_STREQ(to_string(AudioFault::too_short), "too short");
  EXPECT_STREQ(to_string(AudioFault::changed), "changed");
  EXPECT_EQ(AudioError(AudioFault::missing, "").kind(), ErrorKind::io);
  EXPECT_EQ(AudioError(AudioFault::unreadable, "").kind(), ErrorKind::io);
  EXPECT_EQ(AudioError(AudioFault::truncated, "").kind(), ErrorKind::data);
}

TEST(AudioFile, OpensAFileByItsContentWhateverItsName) {
  const TestFolder folder;
  for (const char* const name : {"a.wav", "a.mp3", "a", "ü 音声.wav", "two\nlines.wav", "-i.wav",
                                 "a:b.wav", "%s`$(x)`.wav"}) {
    const auto file = open_audio({.path = folder.write(name, wav16(three))});
    EXPECT_EQ(read_whole(*file), three_read) << name;
  }
}

TEST(AudioFile, ShowsOddNamesOnOneLine) {
  const TestFolder folder;
  const Faulted fault = open_fault({.path = (folder / "two\nlines\x01.wav").string()});
  EXPECT_TRUE(contains(fault.sentence, "two\\nlines\\x01.wav`")) << fault.sentence;
  EXPECT_FALSE(contains(fault.sentence, "\n"));
}

TEST(AudioFile, CallsWhatIsNotThereMissing) {
  const TestFolder folder;
  const std::string file = folder.write("a.wav", wav16(three));
  EXPECT_EQ(open_fault({.path = (folder / "none.wav").string()}), "missing");
  EXPECT_EQ(open_fault({.path = file + "/b.wav"}), "missing") << "a file is no folder";
  EXPECT_EQ(open_fault({.path = ""}), "missing");
  EXPECT_EQ(open_fault({.path = file + std::string("\0.bak", 5)}), "missing")
      << "a zero byte must not open another file";
  std::filesystem::create_symlink("nowhere", folder / "link.wav");
  EXPECT_EQ(open_fault({.path = (folder / "link.wav").string()}), "missing");
}

TEST(AudioFile, CallsWhatIsNoPlainFileUnreadableWithoutWaiting) {
  const TestFolder folder;
  const Faulted directory = open_fault({.path = folder.path().string()});
  EXPECT_EQ(directory, "unreadable");
  EXPECT_TRUE(contains(directory.sentence, "folder")) << directory.sentence;
  const std::string pipe = (folder / "pipe.wav").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const Faulted waiting = open_fault({.path = pipe});
  EXPECT_EQ(waiting, "unreadable");
  EXPECT_TRUE(contains(waiting.sentence, "pipe")) << waiting.sentence;
  EXPECT_EQ(open_fault({.path = "/dev/zero"}), "unreadable");
  std::filesystem::create_symlink("loop.wav", folder / "loop.wav");
  EXPECT_EQ(open_fault({.path = (folder / "loop.wav").string()}), "unreadable");
}

TEST(AudioFile, CallsAFileWithoutPermissionUnreadable) {
  const TestFolder folder;
  const std::string path = folder.write("a.wav", wav16(three));
  chmod(path.c_str(), 0);
  chmod(folder.path().c_str(), 0755);
  const ChildEnd end = in_child([&] {
    if (geteuid() == 0 && seteuid(65534) != 0) _exit(3);  // root may read everything
    _exit(open_fault({.path = path}) == "unreadable" ? 0 : 1);
  });
  EXPECT_EQ(end.code, 0);
}

TEST(AudioFile, CallsAFailingReadUnreadable) {
  std::byte into[4];
  const Faulted fault = fault_of([&] { read_descriptor_at(-1, 0, into, "`a.wav`"); });
  EXPECT_EQ(fault, "unreadable");
  EXPECT_EQ(fault.sentence, "cannot read `a.wav`: Bad file descriptor");
}

TEST(AudioFile, CallsAFileWithoutBytesEmpty) {
  const TestFolder folder;
  EXPECT_EQ(open_fault({.path = folder.write("a.wav", "")}), "empty");
}

TEST(AudioFile, CallsOtherBytesNotAudio) {
  const TestFolder folder;
  for (const std::string& bytes :
       {std::string("Dear reader,\n"), std::string("R"), std::string(5000, '\0'),
        std::string("\xFF\xFE\x41\x00", 4), std::string("%PDF-1.7"), std::string("PK\x03\x04"),
        std::string("#EXTM3U\nhttp://localhost/a.wav\n"), std::string("\x89PNG\r\n\x1a\n")}) {
    EXPECT_EQ(open_fault({.path = folder.write("a.wav", bytes)}), "not audio") << bytes;
  }
  for (const char* const start : {"fLaC", "NIST_1A", ".snd", "RIFX"}) {
    const Faulted fault =
        open_fault({.path = folder.write("a.wav", start + std::string(200, 'x'))});
    EXPECT_EQ(fault, "not audio") << start;
    EXPECT_TRUE(contains(fault.sentence, "begins like")) << fault.sentence;
  }
}

TEST(AudioFile, FindsEveryFaultOfAWavFileOnDisk) {
  const TestFolder folder;
  const std::string whole = wav16(three);
  EXPECT_EQ(open_fault({.path = folder.write("a", whole.substr(0, 46))}), "truncated");
  EXPECT_EQ(open_fault({.path = folder.write("b", wav16({}))}), "empty");
  EXPECT_EQ(open_fault({.path = folder.write("c", wav16(three, {.channels = 3}))},
                       {.limits = {.max_channels = 2}}),
            "bad channels");
  EXPECT_EQ(open_fault({.path = folder.write("d", wav16(three, {.rate = 10}))}), "bad rate");
  EXPECT_EQ(open_fault({.path = folder.write("e", wav16(std::vector<int16_t>(32000)))},
                       {.limits = {.max_seconds = 1.9}}),
            "too long");
}

TEST(AudioFile, ReadsASliceOfAFile) {
  const TestFolder folder;
  const std::string wav = wav16(three), before(1536, 'b'), after(700, 'a');
  const std::string path = folder.write("all.tar", before + wav + after);
  const auto size = static_cast<int64_t>(wav.size());
  for (const bool native : {true, false}) {
    const auto file = open_audio({.path = path, .offset = 1536, .size = size}, {.native = native});
    EXPECT_EQ(read_whole(*file), three_read);
    EXPECT_EQ(file->info().native, native);
  }
  const std::string tail = folder.write("tail", before + wav);
  EXPECT_EQ(read_whole(*open_audio({.path = tail, .offset = 1536})), three_read);
  EXPECT_EQ(open_fault({.path = path, .offset = 1536, .size = size - 1}), "truncated")
      << "never reads beyond its slice";
  EXPECT_EQ(open_fault({.path = path, .offset = 1536, .size = 0}), "empty");
  EXPECT_EQ(open_fault({.path = path, .offset = 1536, .size = 99999}), "truncated");
  EXPECT_EQ(open_fault({.path = path, .offset = 99999}), "truncated");
  EXPECT_EQ(open_fault({.path = path, .offset = -1}), "truncated");
}

TEST(AudioFile, ReadsWavThroughLibsndfileWhenAsked) {
  const TestFolder folder;
  const std::string path =
      folder.write("a.wav", wav16({0, 100, -200, 300, -32768, 32767}, {.channels = 2}));
  const auto ours = open_audio({.path = path}),
             theirs = open_audio({.path = path}, {.native = false});
  EXPECT_TRUE(ours->info().native);
  EXPECT_FALSE(theirs->info().native);
  EXPECT_EQ(theirs->info().format, "wav pcm16");
  EXPECT_EQ(read_whole(*ours), read_whole(*theirs));
  EXPECT_EQ(open_fault({.path = folder.write("b", wav16(three).substr(0, 46))}, {.native = false}),
            "truncated")
      << "libsndfile alone would read it as a shorter one";
}

TEST(AudioFile, LeavesNoDescriptorOpen) {
  const TestFolder folder;
  const std::string good = folder.write("a.wav", wav16(three)), bad = folder.write("b", "text");
  const int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(before);
  for (int i = 0; i < 5; ++i) {
    open_audio({.path = good});
    open_audio({.path = good}, {.native = false});
    open_fault({.path = bad});
    open_fault({.path = folder.path().string()});
    open_fault({.path = good, .offset = 1000});
  }
  const int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(after);
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace tandem::tests
