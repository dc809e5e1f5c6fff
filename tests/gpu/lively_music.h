// What the tests of MusicGen on a GPU share.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "device/registry.h"
#include "models/musicgen/music_decoder.h"
#include "tandem/devices.h"

namespace tandem {

inline LogicalDevice& music_gpu() {
  static const bool configured = [] {
    configure_devices({});
    return true;
  }();
  EXPECT_TRUE(configured);
  return *DeviceRegistry::get().gpus().front();
}

// Random weights large enough that every part of the model moves the logits.
inline MusicDecoder lively_decoder(const MusicDecoderSize& size, int64_t text_width) {
  MusicDecoder decoder = MusicDecoder::make(size, text_width, 3);
  decoder.visit("", [](const std::string&, at::Tensor& tensor) { tensor = tensor.cpu(); });
  const double gain = 50 * 1.2 / std::sqrt(static_cast<double>(size.width));
  for (MusicDecoder::Block& block : decoder.blocks) {
    for (at::Tensor* weight :
         {&block.self.query, &block.self.key, &block.self.value, &block.self.output,
          &block.cross.query, &block.cross.key, &block.cross.value, &block.cross.output,
          &block.expand, &block.contract})
      *weight = *weight * gain;
  }
  for (at::Tensor& head : decoder.heads) head = head * (2 * gain);
  return decoder;
}

inline double decibel(const at::Tensor& ours, const at::Tensor& reference) {
  const double noise = (ours - reference).pow(2).sum().item<double>();
  return 10 * std::log10(reference.pow(2).sum().item<double>() / std::max(noise, 1e-30));
}

}  // namespace tandem
