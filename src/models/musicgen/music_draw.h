// The next code of every codebook from the decoder's logits: guidance, temperature, top-k, top-p,
// draw. Two kinds of randomness:
//
//   counted  draw number (step, codebook) of a clip's seed takes
//            draw_bits(music_key(seed), step * codebooks + codebook)  (nn/draw_bits.h)
//            and picks a code by the rules of nn/draw_weight.h, whatever else is in the batch. A
//            kernel does the same to the bit. `step` counts the columns drawn for the clip, on
//            through all its windows.
//   hf       what torch.multinomial draws on the CPU after torch.manual_seed(seed): one generator
//            for the whole batch, rows in the order clip * codebooks + codebook.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

struct MusicDrawOptions {
  bool greedy = false;
  double temperature = 1.0, top_p = 1.0, guidance_scale = 3.0;  // guidance <= 1: none
  int64_t top_k = 50;                                           // 0: all
  bool guided() const { return guidance_scale > 1; }
};

// Throws Error(config) that names the option when one has no meaning.
void check_music_draw(const MusicDrawOptions& options);

uint64_t music_key(uint64_t seed);

// cond and uncond [B, K, V] float32 -> scores [B, K, V]; `uncond` undefined: cond as it is.
at::Tensor guided_scores(const at::Tensor& cond, const at::Tensor& uncond, double guidance);

// One code from a row of guided scores, by the counted rules. Throws Error(numeric) when no score
// is a number.
int64_t draw_music_code(std::span<const float> scores, const MusicDrawOptions& options,
                        uint64_t bits);
// Chance of each code by the same rules; they add up to 1.
std::vector<double> music_chances(std::span<const float> scores, const MusicDrawOptions& options);

// Where the draws of a batch come from.
class MusicDraws {
 public:
  static MusicDraws counted(const std::vector<uint64_t>& seeds);
  static MusicDraws hf(uint64_t seed);
  // scores [B, K, V] on the CPU -> codes [B, K] int64; draw number `step` of every row.
  at::Tensor operator()(const at::Tensor& scores, const MusicDrawOptions& options, int64_t step);

 private:
  std::vector<uint64_t> keys_;  // a clip, counted
  at::Generator generator_;     // hf
};

}  // namespace tandem
