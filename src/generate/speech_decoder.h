// The GPT of one device while it speaks: places for sequences, each with its keys and values, its
// last code and how its codes are drawn. Calls are queued and run in order; `collect` gives the
// codes of the oldest call. One thread uses it.
#pragma once

#include <ATen/core/TensorBody.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/xtts/xtts_config.h"
#include "nn/rows/few_rows.h"

namespace tandem {

class LogicalDevice;
struct XttsGpt;

struct DecodeStart {
  int place = 0;
  at::Tensor prompt;  // [T, D] float32 on the CPU, its last row the start code
  XttsSampling sampling;
  bool greedy = false;
  uint64_t key = 0;       // draws are a function of (key, step)
  int64_t max_codes = 1;  // stop code included
  // The first rows that stand before every text of the voice; 0: none are told. What they come to
  // is computed once a voice.
  int64_t voice_rows = 0;

  // Whether those rows are as many as a decoder keeps. There is always one behind them to compute.
  bool begins_with_a_voice() const;
};

struct DrawnCode {
  int place = 0;
  int64_t code = 0;
};

class SpeechDecoder {
 public:
  virtual ~SpeechDecoder() = default;
  // The prompts of free places; draws the first code of each.
  virtual void start(const std::vector<DecodeStart>& starts) = 0;
  // One more code of each place; places that have stopped meanwhile are passed over.
  virtual void step(const std::vector<int>& places) = 0;
  virtual size_t queued() const = 0;             // calls not yet collected
  virtual std::vector<DrawnCode> collect() = 0;  // of the oldest call; waits for it
  // A copy of the latents of codes [first, first + count) drawn at a place, on the decoder's
  // device: [count, D] float32.
  virtual at::Tensor latents(int place, int64_t first, int64_t count) = 0;
  virtual int64_t most_queued() const = 0;  // calls worth queueing ahead
  virtual uint64_t captures() const { return 0; }
  virtual uint64_t prompt_rows() const = 0;  // computed so far
};

// Latents of a voice; a decoder keeps the keys and values of that many rows.
constexpr int64_t rows_of_a_voice = 32;
int64_t longest_prompt(const XttsGpt& gpt);  // rows
// Voices worth keeping: those of a folder's speakers where many texts are spoken at once. XTTS v2's
// take 3.9 MB each in half precision.
constexpr int64_t voices_for(int64_t places) { return std::clamp<int64_t>(places, 8, 64); }

// float32, in the calling thread, with the operations of the reference. The row kernels' order of
// sums on the CPU. Keeps up to `voices`; negative: as many as suit the places.
std::unique_ptr<SpeechDecoder> make_plain_decoder(const XttsGpt& gpt, LogicalDevice& device,
                                                  int64_t places, int64_t voices = -1);
// Whether a GPU has what the decoder below needs: tensor cores of compute capability 8.0.
bool has_half_kernels(LogicalDevice& device);
// Half precision with the row kernels and captured steps; `half` is fp16 or bf16.
std::unique_ptr<SpeechDecoder> make_cuda_decoder(const XttsGpt& gpt, LogicalDevice& device,
                                                 int64_t places, const std::string& half,
                                                 const FewRows& few_rows = {}, int64_t voices = -1);

}  // namespace tandem
