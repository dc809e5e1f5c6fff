// The bytes a batch takes, buffer by buffer: those of the CUDA engine in half precision
// (nn/rows/music_rows.h, cuda_music_decoder.h, cuda_codec.h), those of the plain engine in float32.
#include <algorithm>

#include "generate/music_engine.h"
#include "generate/music_windows.h"
#include "models/musicgen/cuda_codec.h"

namespace tandem {
namespace {

constexpr int64_t half = 2, single = 4;

int64_t padded(int64_t value, int64_t block) { return (value + block - 1) / block * block; }

// What the windows of a clip need.
struct Room {
  int64_t places = 0;     // of keys and values
  int64_t positions = 0;  // of each
  int64_t frames = 0;     // of the whole clip
  bool prompted = false;  // several columns are read at once
};

Room room_of(const MusicgenConfig& config, const MusicOptions& music, int64_t clips) {
  Room room;
  room.places = music.sampling.guidance_scale > 1 ? 2 * clips : clips;
  for (const MusicWindow& window : music_windows(config.decoder, music, 0)) {
    room.positions = std::max(room.positions, window.prompt_frames + window.new_tokens);
    room.prompted |= window.prompt_frames > 0;
    room.frames = window.first_frame + window.frames;
  }
  return room;
}

int64_t text_parameters(const T5Size& size) {
  const int64_t heads = size.heads * size.head_width, products = size.gated ? 3 : 2;
  const int64_t block =
      4 * heads * size.width + products * size.inner * size.width + 2 * size.width;
  return size.vocabulary * size.width + size.layers * block + size.buckets * size.heads +
         size.width;
}

// Of the codec's decoding half.
int64_t codec_parameters(const EncodecSize& size) {
  int64_t channels = size.filters << static_cast<int64_t>(size.ratios.size());
  int64_t count = size.codebooks * size.codebook_size * size.codebook_width +
                  channels * size.hidden * size.kernel +
                  size.lstm_layers * (8 * channels * channels + 8 * channels);
  for (const int64_t ratio : size.ratios) {
    count += channels * (channels / 2) * 2 * ratio;
    channels /= 2;
    const int64_t inner = channels / size.compress;
    count += size.residual_layers * channels * inner * (size.residual_kernel + 1);
    if (size.shortcut_conv) count += size.residual_layers * channels * channels;
  }
  return count + channels * size.last_kernel;
}

// Those that are kept in float32 by both engines.
int64_t common_weights(const MusicgenConfig& config) {
  const MusicDecoderSize& size = config.decoder;
  return single *
         (text_parameters(config.text) + codec_parameters(config.codec) +
          size.codebooks * (size.vocabulary + 1) * size.width + size.positions * size.width +
          config.text.width * size.width + (6 * size.layers + 2) * size.width);
}

// One caption read by itself.
int64_t text_work(const T5Size& size, int64_t length) {
  return single * length *
         (8 * size.width + 3 * size.inner + 4 * size.heads * size.head_width +
          3 * size.heads * length);
}

// One clip through Encodec::decode: at its widest, the last stage, the input, its activation, the
// result of a convolution and a padded copy.
int64_t plain_sound(const MusicgenConfig& config, int64_t frames) {
  const int64_t samples = frames * config.codec.hop();
  return single * samples * (5 * config.codec.filters + 2 * config.decoder.channels);
}

MusicMemory half_memory(const MusicgenConfig& config, const MusicEngineOptions& options,
                        const MusicOptions& music, int64_t clips) {
  const MusicDecoderSize& size = config.decoder;
  const Room room = room_of(config, music, clips);
  const int64_t inner = padded(size.width, 32), wide = padded(size.inner, 32);
  const int64_t pad = size.head_width() <= 64 ? 64 : 128, heads = size.heads;
  const int64_t codes = size.codebooks * size.vocabulary;
  MusicMemory memory;
  memory.weights = common_weights(config) +
                   half * (size.layers * (inner * 6 * size.width + inner * size.inner +
                                          wide * size.width + 2 * size.width * size.width) +
                           inner * codes);
  const int64_t a_position = options.cache == "int8" ? heads * (pad + single) : heads * pad * half;
  memory.cache = 2 * size.layers *
                 (room.places * room.positions * a_position +
                  clips * std::max<int64_t>(music.longest_text, 1) * heads * pad * half);
  const bool feeds = room.prompted || !options.use_cache;
  const int64_t rows = padded(feeds ? std::max<int64_t>(2048, room.places) : room.places, 64);
  const int64_t parts = std::min<int64_t>(rows, 512 / heads + 64);
  memory.work = rows * (single * (size.width + heads * pad + 4) + half * (inner + wide)) +
                padded(room.places, 64) * codes * single + parts * heads * 32 * (pad + 2) * single +
                clips * size.codebooks * (room.positions + 1) * single +
                text_work(config.text, music.longest_text);
  if (options.cache == "int8") memory.work += 2 * rows * heads * pad * half;
  const int64_t together = std::min<int64_t>(clips, 32);
  memory.sound = CudaCodec::fits(config.codec)
                     ? CudaCodec::bytes(config.codec, room.frames, together)
                     : plain_sound(config, room.frames);
  const int64_t sounds = together * size.channels * room.frames * config.codec.hop() * single;
  if (size.channels > 1 || !CudaCodec::fits(config.codec)) memory.sound += 2 * sounds;
  return memory;
}

MusicMemory single_memory(const MusicgenConfig& config, const MusicEngineOptions& options,
                          const MusicOptions& music, int64_t clips) {
  const MusicDecoderSize& size = config.decoder;
  const Room room = room_of(config, music, clips);
  const int64_t codes = size.codebooks * size.vocabulary;
  MusicMemory memory;
  memory.weights =
      common_weights(config) +
      single * (size.layers * size.width * (8 * size.width + 2 * size.inner) + size.width * codes);
  const int64_t kept_layers = options.use_cache ? size.layers : 1;
  memory.cache = single * 2 * size.width *
                 (kept_layers * room.places * room.positions +
                  size.layers * clips * std::max<int64_t>(music.longest_text, 1));
  int64_t rows = room.places;
  if (!options.use_cache)
    rows = room.places * room.positions;
  else if (room.prompted)
    rows = std::max<int64_t>(1024, room.places);
  memory.work = single * (rows * (9 * size.width + 2 * size.inner) + 4 * room.places * codes) +
                text_work(config.text, music.longest_text);
  memory.sound = plain_sound(config, room.frames);
  return memory;
}

}  // namespace

MusicMemory music_memory(const MusicgenConfig& config, const MusicEngineOptions& options,
                         const MusicOptions& music, int64_t clips) {
  return options.precision == "fp32" ? single_memory(config, options, music, clips)
                                     : half_memory(config, options, music, clips);
}

}  // namespace tandem
