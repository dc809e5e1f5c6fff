// Many captions to a folder on simulated devices: the same files however the work is split.
#include "generate/music_jobs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "device/simulated.h"
#include "generate/fake_music.h"
#include "generate/music_manifest.h"
#include "support/captured.h"
#include "support/temporary_folder.h"
#include "util/text.h"

namespace tandem {
namespace {

class MusicJobs : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (all_devices.empty()) all_devices = simulate_devices(5);
  }

  MusicJobOptions to(const std::string& name, int64_t batch = 8) {
    MusicJobOptions options;
    options.folder = (folder / name).string();
    options.batch_size = batch;
    options.seed = 7;
    options.recipe = "fake";
    options.note = [this](const std::string& sentence) { notes.push_back(sentence); };
    return options;
  }
  MusicJobProgress make(const MusicJobOptions& options, size_t devices, const Captions& captions) {
    MusicPool pool = fake_music_pool(
        {all_devices.begin(), all_devices.begin() + static_cast<std::ptrdiff_t>(devices)}, record);
    return generate_clips(pool, captions, options);
  }
  std::vector<ClipEntry> entries_of(const std::string& name) {
    std::vector<ClipEntry> entries;
    for (const std::string& line : split(read_file(folder / name / "manifest.jsonl"), '\n')) {
      if (auto entry = clip_entry(line)) entries.push_back(*entry);
    }
    return entries;
  }

  inline static std::vector<LogicalDevice*> all_devices;
  TestFolder folder;
  FakeMusicRecord record;
  std::vector<std::string> notes;
};

TEST_F(MusicJobs, WritesClipsManifestAndMetadataInTheCaptionsOrder) {
  const Captions captions = numbered_captions(10);
  const MusicJobProgress progress = make(to("out", 4), 2, captions);
  EXPECT_EQ(progress.done, 10);
  EXPECT_EQ(progress.skipped + progress.failed, 0);
  EXPECT_TRUE(progress.merged);
  EXPECT_TRUE(record.on_own_device);
  const auto entries = entries_of("out");
  ASSERT_EQ(entries.size(), 10);
  double seconds = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string name = "clip" + std::to_string(i);
    EXPECT_EQ(entries[i].file, name + ".wav");
    EXPECT_EQ(entries[i].status, "done");
    EXPECT_EQ(entries[i].seed, clip_seed(7, name));
    EXPECT_LT(entries[i].seed, uint64_t{1} << 53);
    EXPECT_EQ(entries[i].checksum, file_checksum(folder / "out/audio_samples" / entries[i].file));
    seconds += entries[i].seconds;
  }
  EXPECT_DOUBLE_EQ(progress.sound_seconds, seconds);
  int64_t clips = 0;
  for (const auto& device : progress.devices) {
    clips += device.clips;
    EXPECT_GE(device.busy_share, 0);
    EXPECT_LE(device.busy_share, 1);
  }
  EXPECT_EQ(clips, 10);
  const auto lines = split(read_file(folder / "out/metadata.csv"), '\n');
  EXPECT_EQ(lines[0], "id,text,filename");
  EXPECT_EQ(lines[4], "clip3,caption number 3,clip3.wav");
  std::set<std::string> names;
  for (const auto& [name, bytes] : files_below(folder / "out")) names.insert(name);
  EXPECT_EQ(names.size(), 12) << "ten clips, the manifest and the metadata; no part, no draft";
}

TEST_F(MusicJobs, TheSameBytesForAnyBatchDevicesSplitAndFormat) {
  const Captions captions = numbered_captions(23);
  for (const std::string format : {"wav", "flac"}) {
    MusicJobOptions first = to("one-" + format, 1);
    first.format = format;
    make(first, 1, captions);
    const auto expected = files_below(folder / ("one-" + format));
    ASSERT_EQ(expected.size(), 25);
    for (const size_t devices : {2, 3, 5}) {
      if (format == "flac" && devices != 3) continue;
      for (const std::string split : {"queue", "batch"}) {
        const std::string name = format + split + std::to_string(devices);
        MusicJobOptions options = to(name, 11);
        options.split = split;
        options.format = format;
        options.workers = 3;
        options.writers = 3;
        make(options, devices, captions);
        EXPECT_EQ(files_below(folder / name), expected) << name;
      }
    }
  }
}

TEST_F(MusicJobs, ABatchOf64OverThreeIs21And21And22) {
  MusicJobOptions options = to("out", 64);
  options.split = "batch";
  make(options, 3, numbered_captions(64 + 10));
  EXPECT_EQ(record.batches,
            (std::map<int, std::vector<int64_t>>{{0, {21, 3}}, {1, {21, 3}}, {2, {22, 4}}}));
}

TEST_F(MusicJobs, DevicesWorkAtTheSameTime) {
  for (const std::string split : {"queue", "batch"}) {
    record.meet = 3;
    record.most_inside = 0;
    MusicJobOptions options = to(split, 6);
    options.split = split;
    make(options, 3, numbered_captions(12));
    EXPECT_EQ(record.most_inside, 3) << split;
  }
}

using MusicJobsSoak = MusicJobs;

// Times are measured only where nothing else runs.
TEST_F(MusicJobsSoak, TwoDevicesTakeHalfTheTimeOfOne) {
  if (!std::getenv("TANDEM_SOAK_SECONDS")) GTEST_SKIP() << "a figure of make soak";
  record.batch_time = std::chrono::milliseconds(100);
  for (const std::string split : {"queue", "batch"}) {
    double seconds[2] = {};
    for (const size_t devices : {1, 2}) {
      MusicJobOptions options =
          to(split + std::to_string(devices), 4 * static_cast<int64_t>(devices));
      options.split = split;
      seconds[devices - 1] = make(options, devices, numbered_captions(64)).seconds;
    }
    RecordProperty(split, std::to_string(seconds[1] / seconds[0]));
    EXPECT_LE(seconds[1], 0.55 * seconds[0]) << split;
  }
}

TEST_F(MusicJobs, AFailedDeviceIsTakenOutAndItsClipsGoToTheOthers) {
  const Captions captions = numbered_captions(40);
  make(to("whole"), 1, captions);
  for (const std::string split : {"queue", "batch"}) {
    notes.clear();
    record.meet = record.most_inside = 0;
    record.meet = 2;
    record.before = [](int device, int batch, const auto&) {
      if (device == 1 && batch == 1) throw Error(ErrorKind::device, "fell off the bus");
    };
    MusicJobOptions options = to("lost-" + split);
    options.split = split;
    const MusicJobProgress progress = make(options, 2, captions);
    EXPECT_TRUE(progress.devices[1].lost);
    EXPECT_FALSE(progress.devices[0].lost);
    EXPECT_EQ(files_below(folder / ("lost-" + split)), files_below(folder / "whole")) << split;
    ASSERT_EQ(notes.size(), 1);
    EXPECT_NE(notes[0].find("/GPU:1 failed and is taken out: fell off the bus; its 4 clips go to"),
              std::string::npos)
        << notes[0];
  }
}

TEST_F(MusicJobs, SoundThatFailsLaterIsMadeAgainByTheOthers) {
  const Captions captions = numbered_captions(30);
  make(to("whole"), 1, captions);
  record.made.clear();
  record.meet = 2;
  record.most_inside = 0;
  record.fail_sound_of_batch = 0;
  const MusicJobProgress progress = make(to("out"), 2, captions);
  EXPECT_TRUE(progress.devices[0].lost);
  EXPECT_EQ(files_below(folder / "out"), files_below(folder / "whole"));
  for (const auto& [seed, times] : record.made) EXPECT_EQ(times, 1);
  EXPECT_EQ(record.made.size(), 30);
}

TEST_F(MusicJobs, WithoutADeviceLeftItStopsAndGoesOnLater) {
  const Captions captions = numbered_captions(20);
  record.before = [](int, int batch, const auto&) {
    if (batch == 1) throw Error(ErrorKind::device, "fell off the bus");
  };
  const Error error = error_of([&] { make(to("out", 4), 2, captions); });
  EXPECT_EQ(error.kind(), ErrorKind::device);
  EXPECT_NE(std::string(error.what()).find("no device is left; the last, /GPU:"),
            std::string::npos);
  const size_t before = entries_of("out").size();
  EXPECT_GT(before, 0);
  EXPECT_LT(before, 20);
  record.before = nullptr;
  EXPECT_EQ(make(to("out", 4), 2, captions).skipped, static_cast<int64_t>(before));
  make(to("whole"), 1, captions);
  EXPECT_EQ(files_below(folder / "out"), files_below(folder / "whole"));
  record.on_make = [](int) { throw Error(ErrorKind::memory, "no room for the weights"); };
  const Error none = error_of([&] { make(to("none"), 2, captions); });
  EXPECT_EQ(none.kind(), ErrorKind::device);
  EXPECT_NE(std::string(none.what()).find("no room for the weights"), std::string::npos);
}

TEST_F(MusicJobs, OutOfMemoryHalvesTheBatchOfThatDeviceAndGoesOn) {
  const Captions captions = numbered_captions(64);
  make(to("whole"), 1, captions);
  for (const std::string split : {"queue", "batch"}) {
    notes.clear();
    record.batches.clear();
    record.before = [](int device, int, const auto& batch) {
      if (device == 1 && batch.size() > 3) throw Error(ErrorKind::memory, "16 GiB are not enough");
    };
    record.meet = 2;
    record.most_inside = 0;
    MusicJobOptions options = to("small-" + split, 16);
    options.split = split;
    make(options, 2, captions);
    EXPECT_EQ(files_below(folder / ("small-" + split)), files_below(folder / "whole")) << split;
    EXPECT_LE(*std::ranges::max_element(record.batches[1]), 2);
    EXPECT_EQ(record.batches[0][0], 8);
    ASSERT_EQ(notes.size(), 2) << "8 to 4, 4 to 2";
    EXPECT_NE(notes[0].find("too little memory for 8 clips at once"), std::string::npos);
    EXPECT_NE(notes[1].find("goes on with 2"), std::string::npos);
  }
}

TEST_F(MusicJobs, AClipThatFitsNoMemoryFailsWithASentenceAndTheRestIsMade) {
  const Captions captions = numbered_captions(12);
  const uint64_t big = clip_seed(7, "clip5");
  for (const ErrorKind kind : {ErrorKind::memory, ErrorKind::data}) {
    record.before = [&](int, int, const auto& batch) {
      for (const MusicRequest& request : batch) {
        if (request.seed == big) throw Error(kind, "too much of it");
      }
    };
    const std::string name = to_string(kind);
    const MusicJobProgress progress = make(to(name, 4), 1, captions);
    EXPECT_EQ(progress.failed, 1);
    EXPECT_EQ(progress.done, 12);
    const auto entries = entries_of(name);
    ASSERT_EQ(entries.size(), 12);
    EXPECT_EQ(entries[5].status, "failed");
    EXPECT_EQ(entries[5].error, "/GPU:0 cannot make it: too much of it");
    EXPECT_EQ(split(read_file(folder / name / "metadata.csv"), '\n').size(), 1 + 11 + 1);
    record.before = nullptr;
    const MusicJobProgress again = make(to(name, 4), 1, captions);
    EXPECT_EQ(again.skipped, 11) << "what failed is tried again";
    EXPECT_EQ(again.failed, 0);
  }
}

TEST_F(MusicJobs, StoppingKeepsWhatIsDoneAndTheRerunMakesTheRest) {
  const Captions captions = numbered_captions(60);
  make(to("whole"), 1, captions);
  std::atomic<int> batches{0};
  record.before = [&](int, int, const auto&) {
    ++batches;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  MusicJobOptions options = to("out", 4);
  options.stop = [&] { return batches > 3; };
  const Error error = error_of([&] { make(options, 2, captions); });
  EXPECT_EQ(error.kind(), ErrorKind::interrupted);
  EXPECT_NE(std::string(error.what()).find(" of 60 clips; they are in `"), std::string::npos);
  EXPECT_EQ(error.hint(), "the same command goes on from there");
  const size_t before = entries_of("out").size();
  EXPECT_GT(before, 0);
  EXPECT_LT(before, 60);
  record.made.clear();
  EXPECT_EQ(make(to("out", 4), 2, captions).skipped, static_cast<int64_t>(before));
  EXPECT_EQ(record.made.size(), 60 - before);
  EXPECT_EQ(files_below(folder / "out"), files_below(folder / "whole"));
}

TEST_F(MusicJobs, ARerunMakesOnlyWhatIsMissingDamagedOrChanged) {
  Captions captions = numbered_captions(9);
  make(to("out"), 2, captions);
  const auto first = files_below(folder / "out");
  const int engines = record.engines;
  EXPECT_EQ(make(to("out"), 2, captions).skipped, 9);
  EXPECT_EQ(record.engines, engines) << "nothing to make, no engine";
  const auto sound = [&](int i) {
    return folder / ("out/audio_samples/clip" + std::to_string(i) + ".wav");
  };
  std::filesystem::remove(sound(1));
  std::filesystem::resize_file(sound(2), std::filesystem::file_size(sound(2)) - 4);
  std::string flipped = read_file(sound(3));
  flipped[flipped.size() - 3] ^= 1;
  write_file_atomically(sound(3), flipped);
  EXPECT_EQ(make(to("out"), 2, captions).skipped, 6);
  EXPECT_EQ(files_below(folder / "out"), first);
  captions.rows[4].text = "another caption";
  EXPECT_EQ(make(to("out"), 2, captions).skipped, 8);
  EXPECT_NE(files_below(folder / "out"), first);
  MusicJobOptions other = to("out");
  other.music.sampling.top_k = 250;
  EXPECT_EQ(make(other, 2, captions).skipped, 0);
  other.recipe = "another model";
  EXPECT_EQ(make(other, 2, captions).skipped, 0);
  other.seed = 8;
  EXPECT_EQ(make(other, 2, captions).skipped, 0);
  other.format = "wav16";
  EXPECT_EQ(make(other, 2, captions).skipped, 0);
  EXPECT_EQ(make(other, 2, captions).skipped, 9);
  EXPECT_EQ(entries_of("out").size(), 9);
}

TEST_F(MusicJobs, AudioPromptsOfUnequalLengthAreNeverInOneBatch) {
  Captions captions = numbered_captions(12);
  for (size_t i = 0; i < 12; ++i) {
    if (i % 3 != 0) {
      captions.rows[i].audio_prompt =
          folder.write("p" + std::to_string(i % 3), i % 3 == 1 ? "abc" : "longer");
    }
  }
  captions.rows[4].audio_prompt = (folder / "missing.wav").string();
  record.before = [](int, int, const std::vector<MusicRequest>& batch) {
    for (const MusicRequest& request : batch) {
      const auto frames = [](const MusicRequest& one) {
        return one.prompt.defined() ? one.prompt.size(-1) : 0;
      };
      EXPECT_EQ(frames(request), frames(batch.front()));
    }
  };
  for (const std::string split : {"queue", "batch"}) {
    MusicJobOptions options = to(split, 6);
    options.split = split;
    const MusicJobProgress progress = make(options, 2, captions);
    EXPECT_EQ(progress.done, 12);
    EXPECT_EQ(progress.failed, 1);
    EXPECT_EQ(entries_of(split)[4].status, "failed");
    EXPECT_NE(entries_of(split)[4].error.find("missing.wav"), std::string::npos);
  }
  EXPECT_EQ(files_below(folder / "queue"), files_below(folder / "batch"));
  // A prompt of another sound is another clip.
  folder.write("p2", "lonGer");
  EXPECT_EQ(make(to("queue", 6), 2, captions).skipped, 12 - 4 - 1);
  MusicPool pool = fake_music_pool({all_devices[0]}, record);
  pool.prompt_codes = nullptr;
  EXPECT_EQ(generate_clips(pool, captions, to("without", 6)).failed, 8);
}

TEST_F(MusicJobs, EmptyCaptionsAreMadeAndTooLongOnesFailWithASentence) {
  Captions captions = numbered_captions(3);
  captions.rows[1].text = "";
  captions.rows[2].text = std::string(300, 'x');
  const MusicJobProgress progress = make(to("out"), 1, captions);
  EXPECT_EQ(progress.failed, 1);
  EXPECT_EQ(entries_of("out")[1].status, "done");
  EXPECT_EQ(entries_of("out")[2].error, "the caption has 301 ids; expected at most 256");
}

TEST_F(MusicJobs, SoundWithNumbersThatAreNoneFailsItsClipOnly) {
  record.level = std::numeric_limits<float>::infinity();
  const MusicJobProgress progress = make(to("out"), 1, numbered_captions(3));
  EXPECT_EQ(progress.failed, 3);
  EXPECT_NE(entries_of("out")[0].error.find("NaN or infinite"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder / "out/audio_samples"));
}

TEST_F(MusicJobs, SixteenBitsAreCutOffAtFullScaleAndSaidOnce) {
  record.level = 1.5F;
  record.channels = 2;
  MusicJobOptions options = to("out");
  options.format = "wav16";
  const MusicJobProgress progress = make(options, 2, numbered_captions(6));
  EXPECT_EQ(progress.clipped, 6);
  ASSERT_EQ(notes.size(), 1);
  EXPECT_NE(notes[0].find("passes full scale"), std::string::npos);
  for (const ClipEntry& entry : entries_of("out")) {
    EXPECT_EQ(entry.channels, 2);
    EXPECT_GT(entry.clipped, 0);
  }
}

TEST_F(MusicJobs, ADiskThatFailsEndsTheRunWithItsSentence) {
  record.before = [&](int, int batch, const auto&) {
    if (batch == 1) remove_tree(folder / "out/audio_samples");
  };
  const Error error = error_of([&] { make(to("out", 4), 1, numbered_captions(40)); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_NE(std::string(error.what()).find("audio_samples"), std::string::npos);
}

TEST_F(MusicJobs, RefusesOptionsThatCannotBe) {
  const Captions captions = numbered_captions(2);
  const auto refused = [&](const std::function<void(MusicJobOptions&)>& change, size_t devices) {
    MusicJobOptions options = to("out");
    change(options);
    const Error error = error_of([&] { make(options, devices, captions); });
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return std::string(error.what());
  };
  EXPECT_EQ(refused([](auto& o) { o.shard = 3, o.shards = 3; }, 1),
            "there is no shard 3 of 3; expected 0 to 2");
  EXPECT_EQ(refused([](auto& o) { o.split = "layers"; }, 1),
            "work cannot be split by `layers`; expected queue or batch");
  EXPECT_EQ(refused([](auto& o) { o.format = "mp3"; }, 1),
            "clips cannot be written as `mp3`; expected wav, wav16 or flac");
  EXPECT_EQ(refused([](auto&) {}, 0), "there is no device to generate on");
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST_F(MusicJobs, ProgressCountsUpToTheTotal) {
  MusicJobOptions options = to("out", 4);
  int64_t last = 0, calls = 0;
  options.on_progress = [&](const MusicJobProgress& now) {
    EXPECT_GE(now.done, last);
    EXPECT_EQ(now.devices.size(), 2);
    last = now.done;
    ++calls;
  };
  make(options, 2, numbered_captions(20));
  EXPECT_EQ(last, 20);
  EXPECT_GT(calls, 0);
  notes.clear();
  make(to("few", 1), 3, numbered_captions(4));
  ASSERT_EQ(notes.size(), 1);
  EXPECT_EQ(notes[0], "a batch of 1 does not reach 3 devices; each makes one clip at a time");
}

}  // namespace
}  // namespace tandem
