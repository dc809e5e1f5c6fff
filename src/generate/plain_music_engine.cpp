// The plain engine: float32, a step at a time. On the CPU and on simulated devices a clip's numbers
// do not depend on its batch: rows are computed alone (see MusicSteps), captions are read and sound
// is made clip by clip. On a GPU it serves comparisons and cards without half kernels.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "device/torch_errors.h"
#include "generate/music_checks.h"
#include "generate/music_engine.h"
#include "generate/music_observer.h"
#include "generate/music_windows.h"
#include "models/musicgen/music_pass.h"
#include "models/musicgen/music_sound.h"
#include "models/musicgen/musicgen.h"
#include "tandem/error.h"
#include "util/clock.h"

namespace tandem {
namespace {

void check_options(const MusicEngineOptions& options) {
  if (options.precision != "auto" && options.precision != "fp32") {
    throw Error(ErrorKind::config,
                fmt::format("precision `{}` needs a GPU of compute capability 8.0 or more; "
                            "elsewhere sound is made in fp32",
                            options.precision))
        .hint("leave the precision at `auto`");
  }
  if (options.cache != "same") {
    throw Error(ErrorKind::config,
                fmt::format("a cache in `{}` goes with half precision, on a GPU of compute "
                            "capability 8.0 or more; expected `same`",
                            options.cache));
  }
}

class PlainMusicEngine final : public MusicEngine {
 public:
  PlainMusicEngine(const Musicgen& model, LogicalDevice& device, const MusicEngineOptions& options)
      : config_(model.config),
        device_(device),
        options_(options),
        text_(model.text),
        codec_(model.codec) {
    check_options(options);
    on_device(device_.compute_stream(), [&] {
      const at::Device place = device_.torch_device();
      if (!place.is_cpu()) {
        const auto move = [&](const std::string&, at::Tensor& tensor) {
          tensor = tensor.to(place);
        };
        text_.visit("", move);
        codec_.visit("", move);
      }
      weights_ = MusicStepWeights::make(model.decoder, place);
    });
    thread_ = std::thread([this] { serve_sound(); });
  }

  ~PlainMusicEngine() override {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void generate(std::vector<MusicRequest> batch, const MusicOptions& options, Done done) override {
    rethrow_failure();
    if (batch.empty()) return;
    const Clock::time_point start = Clock::now();
    const int64_t prompted = check_music_batch(batch, options, config_);
    at::Tensor codes;
    try {
      codes = decode(batch, options, prompted);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::memory || !sound_is_open()) throw;
      wait_for_sound();  // it holds memory too
      codes = decode(batch, options, prompted);
    }
    wait_for_sound();  // one batch ahead, not more
    const auto shared = std::make_shared<Done>(std::move(done));
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < batch.size(); ++i)
      queue_.push_back({i, codes[static_cast<int64_t>(i)].contiguous(), shared, observer_,
                        /*last=*/i + 1 == batch.size()});
    turning_ = observer_ != nullptr;
    if (observer_) observer_->begin(MusicPart::turn, device_.preparation_stream());
    ++counters_.batches;
    counters_.clips += batch.size();
    counters_.decode_seconds += seconds_since(start);
    changed_.notify_all();
  }

  void finish() override {
    wait_for_sound();
    rethrow_failure();
    if (std::exchange(turning_, false)) observer_->end(device_.preparation_stream());
  }

  MusicCounters counters() const override {
    std::lock_guard lock(mutex_);
    return counters_;
  }

  void observe(MusicObserver* observer) override { observer_ = observer; }

 private:
  struct Sounding {
    size_t index = 0;
    at::Tensor codes;  // [K, frames]
    std::shared_ptr<Done> done;
    MusicObserver* observer = nullptr;
    bool last = false;  // of its batch
  };

  // In the stream's turn, with its device's scope open; waits for it. What `work` throws is thrown
  // here and not left to the stream, which is not ours alone.
  void on_device(Stream& stream, const std::function<void()>& work) {
    std::exception_ptr failure;
    bool ran = false;
    stream.run([&] {
      ran = true;
      try {
        const at::NoGradGuard no_gradients;
        work();
      } catch (...) {
        failure = std::current_exception();
      }
    });
    stream.record().synchronize();
    if (!ran) {
      stream.synchronize();  // throws what kept the stream from it
      throw Error(ErrorKind::device, fmt::format("{} dropped its work", device_.name()));
    }
    if (!failure) return;
    try {
      std::rethrow_exception(failure);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      const Explanation why = explain_with_torch(error);
      if (why.kind == ErrorKind::memory) throw Error(ErrorKind::memory, why.sentence);
      throw;
    }
  }

  std::vector<at::Tensor> read_captions(const std::vector<MusicRequest>& batch) {
    std::vector<at::Tensor> texts;
    for (const MusicRequest& request : batch) {
      const auto length = static_cast<int64_t>(request.text_ids.size());
      if (length == 0) {
        texts.emplace_back();
        continue;
      }
      const at::Tensor ids =
          at::tensor(request.text_ids, at::kLong).view({1, length}).to(device_.torch_device());
      texts.push_back(text_(ids, at::ones_like(ids)).squeeze(0));
    }
    return texts;
  }

  // -> [B, K, frames] on the CPU
  at::Tensor decode(const std::vector<MusicRequest>& batch, const MusicOptions& options,
                    int64_t prompted) {
    std::lock_guard holding(decoding_);
    Stream& stream = device_.compute_stream();
    std::vector<uint64_t> seeds;
    std::vector<at::Tensor> texts, prompts;
    for (const MusicRequest& request : batch) {
      seeds.push_back(request.seed);
      if (prompted > 0) prompts.push_back(request.prompt.to(at::kLong));
    }
    MusicDraws draws = MusicDraws::counted(seeds);
    {
      const MusicMark mark(observer_, MusicPart::captions, stream);
      on_device(stream, [&] { texts = read_captions(batch); });
    }
    const MusicMark mark(observer_, MusicPart::decoding, stream);
    at::Tensor known =
        prompts.empty()
            ? at::empty({static_cast<int64_t>(batch.size()), config_.decoder.codebooks, 0},
                        at::kLong)
            : at::stack(prompts);
    for (const MusicWindow& window : music_windows(config_.decoder, options, prompted)) {
      std::unique_ptr<MusicPass> pass;
      const at::Tensor prompt = known.narrow(2, window.first_frame, window.prompt_frames);
      on_device(stream, [&] {
        pass = std::make_unique<MusicPass>(
            weights_, texts, prompt, draws,
            MusicPassOptions{.draw = draw_options_of(options.sampling),
                             .new_tokens = window.new_tokens,
                             .first_step = window.first_step,
                             .keep = options_.use_cache,
                             .batched = !device_.torch_device().is_cpu()});
      });
      while (!pass->done()) {
        on_device(stream, [&] { pass->step(); });
        std::lock_guard lock(mutex_);
        ++counters_.steps;
      }
      known = at::cat({known.narrow(2, 0, window.first_frame), pass->codes()}, 2);
    }
    return known;
  }

  at::Tensor make_sound(const Sounding& clip) {
    Stream& stream = device_.preparation_stream();
    at::Tensor sound;
    {
      const MusicMark mark(clip.observer, MusicPart::sound, stream);
      on_device(stream, [&] {
        const at::Tensor there = clip.codes.unsqueeze(0).to(device_.torch_device());
        sound = sound_of_codes(codec_, config_.decoder, there).squeeze(0);
      });
    }
    const MusicMark mark(clip.observer, MusicPart::copy, stream);
    if (!sound.is_cpu()) on_device(stream, [&] { sound = sound.to(at::kCPU); });
    return sound.clone();  // outside the device's scope: what is handed over is not its memory
  }

  void sound_one(const Sounding& clip) {
    const Clock::time_point start = Clock::now();
    if (clip.observer && clip.index == 0) clip.observer->end(device_.preparation_stream());
    at::Tensor sound;
    try {
      sound = make_sound(clip);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::memory) throw;
      std::lock_guard alone(decoding_);  // once more without the keys and values of a batch
      try {
        sound = make_sound(clip);
      } catch (const Error& again) {
        throw Error(ErrorKind::device,
                    fmt::format("{} cannot hold the sound of one clip of {} frames: {}",
                                device_.name(), clip.codes.size(1), again.what()));
      }
    }
    {
      std::lock_guard lock(mutex_);
      counters_.sound_seconds += seconds_since(start);
    }
    {
      const MusicMark mark(clip.observer, MusicPart::hand_over, device_.preparation_stream());
      (*clip.done)(clip.index, {.sound = sound, .codes = clip.codes});
    }
    if (clip.observer && clip.last)
      clip.observer->begin(MusicPart::turn, device_.preparation_stream());
  }

  void serve_sound() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      Sounding clip = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
      lock.unlock();
      std::exception_ptr failure;
      try {
        sound_one(clip);
      } catch (...) {
        failure = std::current_exception();
      }
      clip = {};
      lock.lock();
      busy_ = false;
      if (failure && !failure_) failure_ = failure;
      changed_.notify_all();
    }
  }

  bool sound_is_open() const {
    std::lock_guard lock(mutex_);
    return busy_ || !queue_.empty();
  }
  void wait_for_sound() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !busy_ && queue_.empty(); });
  }
  void rethrow_failure() {
    std::unique_lock lock(mutex_);
    const std::exception_ptr failure = std::exchange(failure_, nullptr);
    lock.unlock();
    if (failure) std::rethrow_exception(failure);
  }

  MusicgenConfig config_;
  LogicalDevice& device_;
  MusicEngineOptions options_;
  T5Encoder text_;  // share the model's tensors unless they were moved to a GPU
  Encodec codec_;
  MusicStepWeights weights_;
  MusicObserver* observer_ = nullptr;
  bool turning_ = false;  // it hears of a turn that `finish` ends
  std::mutex decoding_;   // held while keys and values are

  mutable std::mutex mutex_;  // all below
  std::condition_variable changed_;
  std::deque<Sounding> queue_;
  bool busy_ = false, closing_ = false;
  std::exception_ptr failure_;
  MusicCounters counters_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<MusicEngine> make_plain_music_engine(const Musicgen& model, LogicalDevice& device,
                                                     const MusicEngineOptions& options) {
  return std::make_unique<PlainMusicEngine>(model, device, options);
}

}  // namespace tandem
