// An engine that makes sound by arithmetic of (seed, ids, prompt): every clip can be told from
// every other, and is the same on any device. It counts what it is given, and fails when told to.
#pragma once

#include <ATen/ATen.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "generate/music_jobs.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/counted_random.h"

namespace tandem {

// What the engines of one test share.
struct FakeMusicRecord {
  int64_t channels = 1, samples = 48;
  float level = 0.9F;
  std::chrono::milliseconds batch_time{0};
  size_t meet = 0;  // a batch waits until so many engines are inside (once), to prove they can be
  // Called before each batch with the device's index, the number of its batch and its requests.
  std::function<void(int device, int batch, const std::vector<MusicRequest>&)> before = {};
  std::function<void(int device)> on_make = {};
  int fail_sound_of_batch = -1;  // on device 0: handed over as failed, after half of its clips

  std::mutex mutex;
  std::condition_variable changed;
  std::map<int, std::vector<int64_t>> batches;  // sizes, by device
  std::map<uint64_t, int> made;                 // times, by seed
  size_t inside = 0, most_inside = 0;
  int engines = 0;
  bool on_own_device = true;
};

inline at::Tensor fake_sound(const MusicRequest& request, const FakeMusicRecord& record) {
  uint64_t key = mix_bits(request.seed);
  for (const int64_t id : request.text_ids) key = mix_bits(key ^ static_cast<uint64_t>(id));
  if (request.prompt.defined()) {
    key = mix_bits(key ^ static_cast<uint64_t>(request.prompt.sum().item<int64_t>()));
  }
  const int64_t length = record.samples + static_cast<int64_t>(key % 5);
  at::Tensor sound = at::empty({record.channels, length}, at::kFloat);
  auto* values = sound.data_ptr<float>();
  for (int64_t i = 0; i < sound.numel(); ++i) {
    const double unit =
        static_cast<double>(mix_bits(key + static_cast<uint64_t>(i)) >> 11) / 0x1p53;
    values[i] = static_cast<float>(2 * unit - 1) * record.level;
  }
  return sound;
}

class FakeMusicEngine : public MusicEngine {
 public:
  FakeMusicEngine(LogicalDevice& device, FakeMusicRecord& record)
      : device_(device.index()), record_(record) {
    if (record.on_make) record.on_make(device_);
    std::lock_guard lock(record_.mutex);
    ++record_.engines;
    record_.on_own_device &= DeviceScope::current() == &device;
  }
  ~FakeMusicEngine() override {
    if (sound_.valid()) sound_.wait();
  }

  void generate(std::vector<MusicRequest> batch, const MusicOptions&, Done done) override {
    const int number = batch_++;
    if (record_.before) record_.before(device_, number, batch);
    enter(batch);
    std::this_thread::sleep_for(record_.batch_time);
    leave();
    finish();
    const bool fails = device_ == 0 && number == record_.fail_sound_of_batch;
    sound_ = std::async(std::launch::async, [this, batch = std::move(batch), done, fails] {
      for (size_t i = batch.size(); i-- > 0;) {
        if (fails && i < batch.size() / 2) throw Error(ErrorKind::device, "the sound got lost");
        {
          std::lock_guard lock(record_.mutex);
          ++record_.made[batch[i].seed];
        }
        done(i, {.sound = fake_sound(batch[i], record_), .codes = at::zeros({1, 1}, at::kLong)});
      }
    });
  }
  void finish() override {
    if (sound_.valid()) sound_.get();
  }
  MusicCounters counters() const override { return {}; }

 private:
  void enter(const std::vector<MusicRequest>& batch) {
    std::unique_lock lock(record_.mutex);
    record_.batches[device_].push_back(static_cast<int64_t>(batch.size()));
    ++record_.inside;
    record_.most_inside = std::max(record_.most_inside, record_.inside);
    record_.changed.notify_all();
    record_.changed.wait_for(lock, std::chrono::seconds(20),
                             [&] { return record_.most_inside >= record_.meet; });
  }
  void leave() {
    std::lock_guard lock(record_.mutex);
    --record_.inside;
  }

  int device_;
  FakeMusicRecord& record_;
  int batch_ = 0;
  std::future<void> sound_;
};

// Ids are the caption's bytes and an end; a prompt's codes are its file's bytes.
inline MusicPool fake_music_pool(std::vector<LogicalDevice*> devices, FakeMusicRecord& record) {
  MusicPool pool;
  pool.devices = std::move(devices);
  pool.make_engine = [&record](LogicalDevice& device) {
    return std::make_unique<FakeMusicEngine>(device, record);
  };
  pool.text_ids = [](const std::string& text) {
    std::vector<int64_t> ids(text.begin(), text.end());
    ids.push_back(1);
    return ids;
  };
  pool.prompt_codes = [](const std::string& path) {
    const std::string bytes = read_file(path);
    return at::tensor(std::vector<int64_t>(bytes.begin(), bytes.end()), at::kLong).unsqueeze(0);
  };
  return pool;
}

inline Captions numbered_captions(int count) {
  std::string table = "id,text\n";
  for (int i = 0; i < count; ++i) {
    table += "clip" + std::to_string(i) + ",caption number " + std::to_string(i) + "\n";
  }
  return parse_captions(check_table(table, "captions.csv"), ".csv", {});
}

// All files below a folder, by path.
inline std::map<std::string, std::string> files_below(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[entry.path().lexically_relative(folder).string()] = read_file(entry.path());
  }
  return files;
}

}  // namespace tandem
