#include "generate/clip_writer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sndfile.h>

#include <cmath>
#include <condition_variable>
#include <limits>

#include "support/captured.h"
#include "support/temporary_folder.h"
#include "util/atomic_file.h"

namespace tandem {
namespace {

struct ReadClip {
  int channels = 0, rate = 0, format = 0;
  std::vector<float> samples;  // interleaved
};

ReadClip read_clip(const std::filesystem::path& path) {
  SF_INFO info = {};
  SNDFILE* const file = sf_open(path.c_str(), SFM_READ, &info);
  EXPECT_NE(file, nullptr) << path;
  if (!file) return {};
  ReadClip clip{info.channels, info.samplerate, info.format, {}};
  clip.samples.resize(static_cast<size_t>(info.frames * info.channels));
  EXPECT_EQ(sf_readf_float(file, clip.samples.data(), info.frames), info.frames);
  sf_close(file);
  return clip;
}

// [2, 4]: left and right differ, and some lies beyond full scale.
at::Tensor stereo_sound() {
  return at::tensor({0.0F, 0.25F, 1.5F, 1.0F, -0.5F, -1.0F, -2.0F, 0.125F}).reshape({2, 4});
}

TEST(WriteClip, Float32KeepsBothChannelsAndWhatPassesFullScale) {
  TestFolder folder;
  ClipEntry entry{.file = "a.wav"};
  write_clip(folder.path(), {.name = "wav", .rate = 32000}, stereo_sound(), entry);
  const ReadClip clip = read_clip(folder / "a.wav");
  EXPECT_EQ(clip.channels, 2);
  EXPECT_EQ(clip.rate, 32000);
  EXPECT_EQ(clip.format & SF_FORMAT_SUBMASK, SF_FORMAT_FLOAT);
  EXPECT_EQ(clip.samples, (std::vector<float>{0, -0.5F, 0.25F, -1, 1.5F, -2, 1, 0.125F}));
  EXPECT_EQ(entry.status, "done");
  EXPECT_EQ(entry.channels, 2);
  EXPECT_EQ(entry.clipped, 0);
  EXPECT_DOUBLE_EQ(entry.seconds, 4.0 / 32000);
  EXPECT_EQ(entry.bytes, static_cast<int64_t>(std::filesystem::file_size(folder / "a.wav")));
  EXPECT_EQ(entry.checksum, file_checksum(folder / "a.wav"));
}

TEST(WriteClip, SixteenBitsAreCutOffAtFullScaleAndCounted) {
  TestFolder folder;
  for (const std::string format : {"wav16", "flac"}) {
    const ClipFormat clip_format{.name = format, .rate = 32000};
    ClipEntry entry{.file = "a" + clip_format.ending()};
    write_clip(folder.path(), clip_format, stereo_sound(), entry);
    const ReadClip clip = read_clip(folder / entry.file);
    EXPECT_EQ(clip.format & SF_FORMAT_SUBMASK, SF_FORMAT_PCM_16) << format;
    const float top = 32767.0F / 32768;
    EXPECT_EQ(clip.samples, (std::vector<float>{0, -0.5F, 0.25F, -1, top, -1, top, 0.125F}));
    EXPECT_EQ(entry.clipped, 3) << "1.5, 1.0 and -2, but not -1";
  }
}

TEST(WriteClip, RefusesSoundThatIsNone) {
  TestFolder folder;
  ClipEntry entry{.file = "a.wav"};
  for (const at::Tensor& sound : {at::Tensor(), at::zeros({1, 0}), at::zeros({4})}) {
    const Error error = error_of([&] { write_clip(folder.path(), {}, sound, entry); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_EQ(std::string(error.what()), "cannot write `a.wav`: it has no samples");
  }
  const at::Tensor nan = at::full({1, 3}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(error_of([&] { write_clip(folder.path(), {}, nan, entry); }).kind(), ErrorKind::data);
  EXPECT_EQ(error_of([&] { write_clip(folder / "none", {}, stereo_sound(), entry); }).kind(),
            ErrorKind::io);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// Writers that wait until they are let go.
struct SlowDisk {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  int written = 0;
  void pass() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return open; });
    ++written;
  }
  void let_go() {
    std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
};

TEST(ClipWriter, DoesNotHoldItsCallerUpWhileItHasRoom) {
  TestFolder folder;
  SlowDisk disk;
  ClipWriter writer({.folder = folder.path(),
                     .format = {},
                     .threads = 1,
                     .capacity = 6,
                     .written = [&](ClipEntry) { disk.pass(); },
                     .failed = [](std::exception_ptr) { FAIL(); }});
  // With its only thread standing still: one clip at the disk, six in the queue.
  for (int i = 0; i < 6; ++i) writer.put({.file = std::to_string(i) + ".wav"}, stereo_sound());
  {
    std::lock_guard lock(disk.mutex);
    EXPECT_EQ(disk.written, 0) << "all were taken before any was done";
  }
  disk.let_go();
  writer.finish();
  EXPECT_EQ(disk.written, 6);
  EXPECT_EQ(writer.counters().items, 6);
}

TEST(ClipWriter, RecordsBadSoundAndGoesOnButEndsWithTheDisk) {
  TestFolder folder;
  std::mutex mutex;
  std::map<std::string, ClipEntry> entries;
  std::exception_ptr failure;
  {
    ClipWriter writer({.folder = folder.path(),
                       .format = {},
                       .threads = 2,
                       .capacity = 8,
                       .written =
                           [&](ClipEntry entry) {
                             std::lock_guard lock(mutex);
                             entries[entry.file] = entry;
                           },
                       .failed = [&](std::exception_ptr why) { failure = why; }});
    writer.put({.file = "bad.wav"}, at::full({1, 3}, std::nanf("")));
    writer.put({.file = "good.wav"}, stereo_sound());
  }
  EXPECT_EQ(entries.size(), 2);
  EXPECT_EQ(entries["bad.wav"].status, "failed");
  EXPECT_NE(entries["bad.wav"].error.find("NaN"), std::string::npos);
  EXPECT_EQ(entries["good.wav"].status, "done");
  EXPECT_FALSE(failure);
  ClipWriter broken({.folder = folder / "none",
                     .format = {},
                     .threads = 1,
                     .capacity = 2,
                     .written = [](ClipEntry) { FAIL(); },
                     .failed = [&](std::exception_ptr why) { failure = why; }});
  for (int i = 0; i < 50; ++i) broken.put({.file = "a.wav"}, stereo_sound());  // does not hang
  broken.finish();
  const Error error = error_of([&] { std::rethrow_exception(failure); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
}

}  // namespace
}  // namespace tandem
