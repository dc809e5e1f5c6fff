// One thread and one engine, with its own copy of the weights, a device. What a device cannot do is
// done by the others: out of memory, it goes on with half the clips at once; failed, it is taken
// out and its clips go back.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "generate/music_engine.h"
#include "generate/music_shares.h"

namespace tandem {

struct DeviceWork {
  int64_t clips = 0;        // handed over
  double busy_seconds = 0;  // inside the engine
  bool lost = false;
};

class MusicWorkers {
 public:
  struct Options {
    std::vector<LogicalDevice*> devices;
    std::function<std::unique_ptr<MusicEngine>(LogicalDevice&)> make_engine;
    MusicOptions music;
    // From any thread; must not throw. `deliver` gets each clip once, `fail` those that no device
    // can make, with a sentence.
    std::function<void(PreparedClip, MusicClip)> deliver;
    std::function<void(PreparedClip, const std::string&)> fail;
    std::function<void(const std::string&)> note;
    std::function<void(std::exception_ptr)> ended;  // no device is left
  };
  // Begins at once. `shares` must outlive it.
  MusicWorkers(ClipShares& shares, Options options);
  ~MusicWorkers();  // as `join`

  void join();  // until `shares` is over or stopped
  std::vector<DeviceWork> work() const;

 private:
  struct Flight;  // clips given to an engine
  struct Worker;
  void run(Worker& worker);
  void work_through(Worker& worker);
  void generate(Worker& worker, ClipBatch batch);
  void halve(Worker& worker, ClipBatch batch, const std::string& why);
  void fail_one(Worker& worker, PreparedClip clip, const std::string& why);
  void one_by_one(Worker& worker, ClipBatch batch);
  void lose(Worker& worker, const std::string& why);
  void arrived(Worker& worker, Flight& flight, size_t index, MusicClip clip);
  template <class Call>
  void busily(Worker& worker, const Call& call);

  ClipShares& shares_;
  Options options_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace tandem
