// The program is replaced by small scripts where its behaviour matters; what the real one reads is
// in reference_test.cpp.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "audio/file/ffmpeg_reader.h"
#include "audio/file/wav_bytes.h"
#include "support/temporary_folder.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem::tests {
namespace {

class Ffmpeg : public testing::Test {
 protected:
  // A program that does as `script` says.
  std::string program(const std::string& script) const {
    const std::string path = folder.write("program", "#!/bin/sh\n" + script + "\n");
    chmod(path.c_str(), 0755);
    return path;
  }

  Faulted fault(FfmpegOptions options) const {
    return fault_of([&] { open_with_ffmpeg(source, content, options); });
  }

  // What ffmpeg streams for these frames, as a script.
  std::string streaming(const std::string& samples, const Format& format) const {
    folder.write("streamed", riff(format_chunk(format) + data_claiming(0xFFFFFFFF, samples), "RIFF",
                                  0xFFFFFFFF));
    return "cat '" + (folder / "streamed").string() + "'";
  }

  const TestFolder folder;
  const FileSlice source{{.path = folder.write("clip.m4a", "....ftypM4A and so on")}};
  const Content content{Reader::ffmpeg, "mp4"};
  const Format stereo{.tag = 3, .channels = 2, .rate = 24000, .bits = 32};
};

TEST_F(Ffmpeg, MixesWhatTheProgramStreams) {
  std::vector<float> samples;
  for (int i = 0; i < 50'000; ++i) {
    samples.push_back(static_cast<float>(i) / 65536);
    samples.push_back(static_cast<float>(i) / 32768);
  }
  const auto file =
      open_with_ffmpeg(source, content, {.program = program(streaming(raw_all(samples), stereo))});
  EXPECT_EQ(file->info().frames, 50'000);
  EXPECT_EQ(file->info().channels, 2);
  EXPECT_EQ(file->info().sample_rate, 24000);
  EXPECT_EQ(file->info().format, "mp4");
  EXPECT_EQ(read_part(*file, 40'000, 2),
            (std::vector<float>{40'000 * 1.5F / 65536, 40'001 * 1.5F / 65536}));
  EXPECT_THROW(read_part(*file, 49'999, 2), Error);
}

TEST_F(Ffmpeg, MixesWhatComesInSmallPieces) {
  const std::string script = streaming(raw_all(std::vector<float>{0.25F, 0.75F, -1, 0}), stereo);
  const std::string file = (folder / "streamed").string();
  const std::string pieces = "for i in 0 1 2 3 4 5 6 7 8 9; do dd bs=7 count=1 skip=$i if='" +
                             file + "' 2>/dev/null; done";
  const auto opened = open_with_ffmpeg(source, content, {.program = program(pieces)});
  EXPECT_EQ(read_whole(*opened), (std::vector<float>{0.5F, -0.5F}));
}

TEST_F(Ffmpeg, SaysToInstallTheProgram) {
  const Faulted missing = fault({.program = "no-such-program-anywhere"});
  EXPECT_EQ(missing, "not audio");
  EXPECT_TRUE(contains(missing.sentence, "not installed")) << missing.sentence;
  EXPECT_TRUE(contains(missing.hint, "apt install ffmpeg")) << missing.hint;
}

TEST_F(Ffmpeg, SaysThatTheProgramCannotBeStarted) {
  const Faulted failed = fault({.program = folder.write("plain", "not executable")});
  EXPECT_EQ(failed, "unreadable");
  EXPECT_TRUE(contains(failed.sentence, "cannot start")) << failed.sentence;
}

TEST_F(Ffmpeg, TellsTheLastWordsOfTheProgram) {
  const Faulted failed = fault(
      {.program = program("echo first >&2; echo '[mov @ 0x55] moov atom not found' >&2; exit 1")});
  EXPECT_EQ(failed, "not audio");
  EXPECT_TRUE(failed.sentence.ends_with("as mp4: moov atom not found")) << failed.sentence;
  const Faulted silent = fault({.program = program("exit 0")});
  EXPECT_EQ(silent, "not audio");
  EXPECT_TRUE(contains(silent.sentence, "did not say why")) << silent.sentence;
}

TEST_F(Ffmpeg, SurvivesAFloodOfWords) {
  const Faulted failed = fault({.program = program("i=0; while [ $i -lt 4000 ]; do echo 'a long "
                                                   "line of complaint that says nothing new' >&2; "
                                                   "i=$((i+1)); done; echo last >&2; exit 1")});
  EXPECT_TRUE(failed.sentence.ends_with(": last")) << failed.sentence;
}

TEST_F(Ffmpeg, CallsAFileThatFailsOnTheWayTruncated) {
  const std::string some = streaming(raw_all(std::vector<float>(20)), stereo);
  EXPECT_EQ(fault({.program = program(some + "; echo broken frame >&2; exit 69")}), "truncated");
  EXPECT_EQ(fault({.program = program(some + "; kill -9 $$")}), "truncated");
}

TEST_F(Ffmpeg, ChecksWhatItGets) {
  const auto streamed = [&](const std::string& samples, const Format& format) {
    return fault({.program = program(streaming(samples, format))});
  };
  EXPECT_EQ(streamed("", stereo), "empty");
  EXPECT_EQ(streamed(raw_all(std::vector<float>{0, NAN}), stereo), "not finite");
  EXPECT_EQ(streamed(std::string(400, '\0'), {.tag = 3, .channels = 50, .bits = 32}),
            "bad channels");
  EXPECT_EQ(streamed(std::string(400, '\0'), {.tag = 3, .rate = 1, .bits = 32}), "bad rate");
  EXPECT_EQ(fault({.program = program("echo this is no sound")}), "not audio");
}

TEST_F(Ffmpeg, EndsAProgramThatNeverStopsSending) {
  const std::string endless = streaming("", stereo) + "; exec cat /dev/zero";
  const Faulted endless_fault = fault({.limits = {.max_seconds = 5}, .program = program(endless)});
  EXPECT_EQ(endless_fault, "too long");
}

// Gone, or dead and not yet collected by whoever inherited it.
bool has_ended(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string number, name, state;
  return !(file >> number >> name >> state) || state == "Z" || state == "X";
}

TEST_F(Ffmpeg, EndsAProgramThatTakesTooLongAndWhatItStarted) {
  const std::string note = " > '" + (folder / "pid").string() + "'; ";
  for (const std::string& script :
       {"echo $$" + note + "exec sleep 600", "echo $$" + note + "exec >&-; exec sleep 600",
        "echo $$" + note + "exec >&- 2>&-; exec sleep 600",
        "sleep 600 & echo $!" + note + "wait"}) {
    const Faulted late = fault({.program = program(script), .seconds_allowed = 0.5});
    EXPECT_EQ(late, "unreadable") << script;
    EXPECT_TRUE(contains(late.sentence, "did not decode it within")) << late.sentence;
    const std::string pid = trim(read_file(folder / "pid"));
    for (int i = 0; i < 500 && !has_ended(pid); ++i) usleep(10'000);
    EXPECT_TRUE(has_ended(pid)) << script << " still runs";
  }
}

TEST_F(Ffmpeg, GivesTheProgramTheOpenFileNotItsName) {
  const std::string said = (folder / "said").string();
  const std::string script =
      "printf '%s\\n' \"$@\" > '" + said + "'; cat /dev/fd/3 >> '" + said + "'; exit 1";
  fault({.program = program(script)});
  const std::string words = read_file(said);
  EXPECT_TRUE(contains(words, "\n-i\nfile:/dev/fd/3\n")) << words;
  EXPECT_FALSE(contains(words, "clip.m4a"));
  EXPECT_TRUE(words.ends_with("and so on"));

  const FileSlice slice(
      {.path = folder.write("all.tar", std::string(90, 'x')), .offset = 20, .size = 30});
  fault_of([&] {
    open_with_ffmpeg(slice, {Reader::ffmpeg, "g722"}, {.program = program(script)});
  });
  EXPECT_TRUE(
      contains(read_file(said), "\n-f\ng722\n-i\nsubfile,,start,20,end,50,,:file:/dev/fd/3\n"));
}

TEST_F(Ffmpeg, LeavesNoDescriptorOpen) {
  const auto next = [] {
    const int number = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int high = fcntl(number, F_DUPFD_CLOEXEC, 10);
    close(number);
    close(high);
    return std::pair(number, high);
  };
  const auto before = next();
  fault({.program = program("exit 1")});
  fault({.program = "no-such-program-anywhere"});
  fault({.limits = {.max_seconds = 1},
         .program = program(streaming("", stereo) + "; exec cat /dev/zero")});
  EXPECT_EQ(next(), before);
}

}  // namespace
}  // namespace tandem::tests
