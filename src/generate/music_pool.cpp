#include "generate/music_pool.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "device/torch_errors.h"
#include "tandem/error.h"
#include "util/clock.h"

namespace tandem {

struct MusicWorkers::Flight {
  std::mutex mutex;  // guards what follows
  ClipBatch clips;
  std::vector<bool> arrived;
  bool generated = false;  // its codes are there
  bool over = false;       // given back: what still comes is not wanted

  ClipBatch rest() {
    std::lock_guard lock(mutex);
    over = true;
    ClipBatch missing;
    for (size_t i = 0; i < clips.size(); ++i) {
      if (!arrived[i]) missing.push_back(std::move(clips[i]));
    }
    return missing;
  }
  bool complete() {
    std::lock_guard lock(mutex);
    return std::ranges::all_of(arrived, [](bool one) { return one; });
  }
};

struct MusicWorkers::Worker {
  size_t index = 0;
  LogicalDevice* device = nullptr;
  std::unique_ptr<MusicEngine> engine;  // of the thread
  std::deque<std::shared_ptr<Flight>> flights;
  std::thread thread;
  mutable std::mutex mutex;  // guards what follows
  DeviceWork work;
  std::optional<Clock::time_point> busy_since;
};

MusicWorkers::MusicWorkers(ClipShares& shares, Options options)
    : shares_(shares), options_(std::move(options)) {
  for (size_t i = 0; i < options_.devices.size(); ++i) {
    auto worker = std::make_unique<Worker>();
    worker->index = i;
    worker->device = options_.devices[i];
    workers_.push_back(std::move(worker));
  }
  for (auto& worker : workers_) {
    worker->thread = std::thread([this, &worker = *worker] { run(worker); });
  }
}

MusicWorkers::~MusicWorkers() { join(); }

void MusicWorkers::join() {
  for (auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
}

std::vector<DeviceWork> MusicWorkers::work() const {
  std::vector<DeviceWork> all;
  for (const auto& worker : workers_) {
    std::lock_guard lock(worker->mutex);
    all.push_back(worker->work);
    if (worker->busy_since) all.back().busy_seconds += seconds_since(*worker->busy_since);
  }
  return all;
}

template <class Call>
void MusicWorkers::busily(Worker& worker, const Call& call) {
  {
    std::lock_guard lock(worker.mutex);
    worker.busy_since = Clock::now();
  }
  const auto end = [&] {
    std::lock_guard lock(worker.mutex);
    worker.work.busy_seconds += seconds_since(*worker.busy_since);
    worker.busy_since.reset();
  };
  try {
    call();
  } catch (...) {
    end();
    throw;
  }
  end();
}

void MusicWorkers::run(Worker& worker) {
  try {
    DeviceScope scope(*worker.device);
    try {
      work_through(worker);
    } catch (const std::exception& error) {
      lose(worker, explain_with_torch(error).sentence);
    }
  } catch (const std::exception& error) {  // the device cannot even be begun with
    lose(worker, explain_with_torch(error).sentence);
  }
}

void MusicWorkers::work_through(Worker& worker) {
  while (!worker.work.lost) {
    if (auto batch = shares_.take(worker.index)) {
      generate(worker, std::move(*batch));
      continue;
    }
    if (worker.engine) busily(worker, [&] { worker.engine->finish(); });
    if (!shares_.wait_for_more(worker.index)) break;
  }
  worker.engine.reset();
}

void MusicWorkers::generate(Worker& worker, ClipBatch batch) {
  const auto flight = std::make_shared<Flight>();
  flight->arrived.resize(batch.size());
  std::vector<MusicRequest> requests;
  for (const PreparedClip& clip : batch) requests.push_back(clip.request);
  flight->clips = std::move(batch);
  std::erase_if(worker.flights, [](const auto& one) { return one->complete(); });
  worker.flights.push_back(flight);
  const size_t count = requests.size();
  // A model that does not fit is no matter of the batch.
  if (!worker.engine) worker.engine = options_.make_engine(*worker.device);
  try {
    busily(worker, [&] {
      worker.engine->generate(std::move(requests), options_.music,
                              [this, &worker, flight](size_t index, MusicClip clip) {
                                arrived(worker, *flight, index, std::move(clip));
                              });
    });
  } catch (const std::exception& error) {
    const Explanation why = explain_with_torch(error);
    const bool of_the_clips = why.kind == ErrorKind::data || why.kind == ErrorKind::usage;
    if (why.kind != ErrorKind::memory && !of_the_clips) throw;
    worker.flights.pop_back();
    ClipBatch clips = flight->rest();
    if (count == 1) {
      fail_one(worker, std::move(clips.front()), why.sentence);
    } else if (why.kind == ErrorKind::memory) {
      halve(worker, std::move(clips), why.sentence);
    } else {
      one_by_one(worker, std::move(clips));
    }
    return;
  }
  flight->generated = true;
  shares_.generated(count);
}

// Some clip of the batch cannot be used, and the engine does not say which.
void MusicWorkers::one_by_one(Worker& worker, ClipBatch batch) {
  for (size_t i = 0; i < batch.size(); ++i) {
    ClipBatch alone;
    alone.push_back(std::move(batch[i]));
    try {
      generate(worker, std::move(alone));
    } catch (...) {
      batch.erase(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      shares_.give_back(std::move(batch), /*was_generated=*/false);
      throw;
    }
  }
}

void MusicWorkers::arrived(Worker& worker, Flight& flight, size_t index, MusicClip clip) {
  PreparedClip prepared;
  {
    std::lock_guard lock(flight.mutex);
    if (flight.over || index >= flight.arrived.size() || flight.arrived[index]) return;
    flight.arrived[index] = true;
    prepared = std::move(flight.clips[index]);
  }
  {
    std::lock_guard lock(worker.mutex);
    ++worker.work.clips;
  }
  options_.deliver(std::move(prepared), std::move(clip));
  shares_.resolve(1);
}

void MusicWorkers::halve(Worker& worker, ClipBatch batch, const std::string& why) {
  const auto count = static_cast<int64_t>(batch.size());
  const int64_t half = count / 2;
  if (half < shares_.limit(worker.index)) {
    options_.note(
        fmt::format("{} has too little memory for {} clips at once ({}); it goes on with {}",
                    worker.device->name(), count, why, half));
  }
  shares_.try_smaller(worker.index, std::move(batch), half);
}

void MusicWorkers::fail_one(Worker& worker, PreparedClip clip, const std::string& why) {
  shares_.generated(1);
  options_.fail(std::move(clip), fmt::format("{} cannot make it: {}", worker.device->name(), why));
  shares_.resolve(1);
}

void MusicWorkers::lose(Worker& worker, const std::string& why) {
  worker.engine.reset();  // what it still hands over is as good as any
  {
    std::lock_guard lock(worker.mutex);
    worker.work.lost = true;
  }
  shares_.lose(worker.index);
  size_t clips = 0;
  for (const auto& flight : worker.flights) {
    ClipBatch rest = flight->rest();
    clips += rest.size();
    shares_.give_back(std::move(rest), flight->generated);
  }
  worker.flights.clear();
  const std::string name = worker.device->name();
  if (shares_.devices_left() > 0) {
    options_.note(fmt::format("{} failed and is taken out: {}; its {} clip{} go{} to the others",
                              name, why, clips, clips == 1 ? "" : "s", clips == 1 ? "es" : ""));
  } else if (!shares_.over()) {
    shares_.stop();
    options_.ended(std::make_exception_ptr(
        Error(ErrorKind::device,
              fmt::format("no device is left; the last, {}, failed: {}", name, why))
            .hint("what is done stays done; the same command goes on from there")));
  }
}

}  // namespace tandem
