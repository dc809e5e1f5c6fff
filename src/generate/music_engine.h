// Generates clips on one device, a batch at a time. What a clip sounds like depends on its caption,
// prompt, seed and the options only: not on the batch it is in, its place there, or the device.
//
// `generate` returns when the batch's codes are there; its sound is made while the next batch is
// decoded, and handed over from a thread of the engine. One thread calls an engine.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

class LogicalDevice;
class MusicObserver;
struct Musicgen;
struct MusicgenConfig;

struct MusicSampling {
  bool greedy = false;
  double temperature = 1.0, top_p = 1.0, guidance_scale = 3.0;  // guidance <= 1: none
  int64_t top_k = 50;                                           // 0: all
};

struct MusicOptions {
  MusicSampling sampling;
  int64_t new_tokens = 1503;  // columns behind the start (or behind the prompt)
  // Clips of more columns than the model has positions, or than `window_tokens`, are made in
  // windows that begin with the last `kept_tokens` frames of the window before.
  int64_t window_tokens = 1503, kept_tokens = 600;
  // Longest caption; all batches then have the same shape, so that one captured step serves all.
  int64_t longest_text = 256;
};

struct MusicRequest {
  std::vector<int64_t> text_ids;  // with </s>
  uint64_t seed = 0;              // draws are a function of (seed, step, codebook)
  at::Tensor prompt;              // [K, P] codes to go on from, or undefined; one P in a batch
};

struct MusicClip {
  at::Tensor sound;  // [channels, samples] float32 on the CPU; prompt included
  at::Tensor codes;  // [K, frames] int64 on the CPU
};

struct MusicCounters {
  uint64_t batches = 0, clips = 0, steps = 0, captures = 0;
  double decode_seconds = 0, sound_seconds = 0;  // the device's own time, where it can be told
};

class MusicEngine {
 public:
  // Called once a clip, in any order, from a thread of the engine; `index` is its place in the
  // batch.
  using Done = std::function<void(size_t index, MusicClip clip)>;

  virtual ~MusicEngine() = default;  // waits for its sound
  // Throws Error(memory) when the batch does not fit (nothing of it was handed over, the engine can
  // be used again), Error(device) when the device has failed, and what `Done` threw for an earlier
  // batch.
  virtual void generate(std::vector<MusicRequest> batch, const MusicOptions& options,
                        Done done) = 0;
  virtual void finish() = 0;  // until all sound is handed over
  virtual MusicCounters counters() const = 0;
  // Who hears of the parts of batches from now on, or nobody; between batches, all sound handed
  // over. Engines of one part have nothing to tell.
  virtual void observe(MusicObserver*) {}
  // What it keeps on the device from batch to batch, as far as it is known by part.
  virtual std::vector<std::pair<std::string, uint64_t>> bytes_by_part() const { return {}; }
};

struct MusicEngineOptions {
  std::string precision = "auto";  // fp32, fp16, bf16; auto: fp16 on a GPU that can, fp32 elsewhere
  std::string cache = "same";      // of keys and values: "same" as the products, or "int8"
  bool use_cache = true;           // false: everything is computed again at each step (slow)
  bool pin_memory = true;          // sound comes to the host through page-locked memory
  bool capture = true;             // false: steps are launched kernel by kernel, to trace them
};

// The model must outlive the engine. Chooses the CUDA engine on a GPU of compute capability 8.0 and
// the plain one elsewhere.
std::unique_ptr<MusicEngine> make_music_engine(const Musicgen& model, LogicalDevice& device,
                                               const MusicEngineOptions& options = {});
std::unique_ptr<MusicEngine> make_plain_music_engine(const Musicgen& model, LogicalDevice& device,
                                                     const MusicEngineOptions& options);
std::unique_ptr<MusicEngine> make_cuda_music_engine(const Musicgen& model, LogicalDevice& device,
                                                    const MusicEngineOptions& options);

// Bytes a batch of `clips` takes on a device, by part; checked against what was measured.
struct MusicMemory {
  int64_t weights = 0, cache = 0, work = 0, sound = 0;
  int64_t total() const { return weights + cache + work + sound; }
};
MusicMemory music_memory(const MusicgenConfig& config, const MusicEngineOptions& options,
                         const MusicOptions& music, int64_t clips);

}  // namespace tandem
