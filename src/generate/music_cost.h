// Seconds that a batch of clips takes on a device, from the bytes it must read and the products it
// must make.
#pragma once

#include <cstdint>

#include "generate/music_plan.h"

namespace tandem {

struct MusicDeviceSpeed {
  double bytes = 0;   // a second, from memory
  double flops = 0;   // a second, in the precision of the products
  double launch = 0;  // seconds that a layer takes however little it does
  bool known = true;  // false: the hardware is not in the table, and these are guesses
};
MusicDeviceSpeed music_device_speed(const MusicPlanDevice& device);

struct MusicBatchCost {
  const MusicgenConfig& model;
  const MusicEngineOptions& engine;
  const MusicOptions& music;
  MusicDeviceSpeed speed;
  int64_t clips = 1;
};
double music_batch_seconds(const MusicBatchCost& cost);

// Products of the codec's decoder for one frame of one channel, in floating-point operations.
double codec_flops_a_frame(const EncodecSize& codec);
// Bytes of weights one step of the decoder reads.
double step_weight_bytes(const MusicDecoderSize& size, const MusicEngineOptions& engine);

}  // namespace tandem
