// Sizes of a MusicGen model: the text encoder (T5), the decoder over codes, and the codec
// (EnCodec). All are read from the folder's config.json and generation_config.json; what
// transformers leaves out of the file there, it means as the defaults here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tandem {

struct T5Size {
  int64_t width = 512, layers = 6, heads = 8, head_width = 64, inner = 2048;
  int64_t vocabulary = 32128, buckets = 32, max_distance = 128;
  double norm_eps = 1e-6;
  std::string activation = "relu";  // also "gelu", "gelu_new", "silu"; gated: two products
  bool gated = false;
};

struct EncodecSize {
  int64_t rate = 24000, channels = 1;
  int64_t hidden = 128, filters = 32, kernel = 7, last_kernel = 7, residual_kernel = 3;
  int64_t residual_layers = 1, dilation_growth = 2, compress = 2, lstm_layers = 2;
  std::vector<int64_t> ratios = {8, 5, 4, 2};  // of the decoder; the encoder goes backwards
  int64_t codebook_size = 1024, codebook_width = 128, codebooks = 32;
  bool causal = true, shortcut_conv = true;
  std::string padding = "reflect";
  double trim_right = 1.0;
  int64_t hop() const;        // samples a frame
  double frame_rate() const;  // frames a second
};

struct MusicDecoderSize {
  int64_t width = 1024, layers = 24, heads = 16, inner = 4096;
  int64_t codebooks = 4, vocabulary = 2048, positions = 2048, channels = 1;
  int64_t pad_token = 2048;  // also the start of every codebook's row
  bool scale_embedding = false;
  std::string activation = "gelu";
  int64_t head_width() const { return width / heads; }
  int64_t codebooks_a_channel() const { return codebooks / channels; }
};

// What the folder's own generation_config.json asks for.
struct MusicgenDefaults {
  bool sample = true;
  double guidance_scale = 3.0, temperature = 1.0, top_p = 1.0;
  int64_t top_k = 50, max_length = 1500;
};

struct MusicgenConfig {
  T5Size text;
  EncodecSize codec;
  MusicDecoderSize decoder;
  MusicgenDefaults defaults;

  // Throws Error(config) for what is no MusicGen, with what it is (melody models are refused by
  // name), Error(corrupt) for sizes that cannot be, Error(io) when there is no config.json. Without
  // generation_config.json its defaults hold.
  static MusicgenConfig read(const std::filesystem::path& folder);
};

}  // namespace tandem
