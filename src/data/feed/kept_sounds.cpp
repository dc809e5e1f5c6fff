#include "data/feed/kept_sounds.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "util/host_memory.h"
#include "util/log.h"

namespace tandem {
namespace {

constexpr float sixteen_bits = 32768;
std::atomic<int64_t> bytes_of_all{0};

// Most files have 16 bits a sample, which take half the room.
bool fits_sixteen_bits(const float* samples, int64_t count) {
  return std::all_of(samples, samples + count, [](float sample) {
    const float scaled = sample * sixteen_bits;
    return scaled >= -sixteen_bits && scaled < sixteen_bits && scaled == std::nearbyint(scaled) &&
           !(scaled == 0 && std::signbit(scaled));
  });
}

}  // namespace

struct KeptSounds::Sound {
  std::vector<int16_t> small;
  std::vector<float> exact;
};

KeptSounds::KeptSounds(int64_t clips, int64_t most_bytes)
    : clips_(clips),
      most_bytes_(most_bytes),
      sounds_(new std::atomic<Sound*>[static_cast<size_t>(clips)]()) {}

KeptSounds::~KeptSounds() {
  for (int64_t clip = 0; clip < clips_; ++clip) delete sounds_[static_cast<size_t>(clip)].load();
  bytes_of_all -= bytes_;
}

bool KeptSounds::copy(int64_t clip, float* out) const {
  const Sound* sound = sounds_[static_cast<size_t>(clip)].load(std::memory_order_acquire);
  if (!sound) return false;
  std::copy(sound->exact.begin(), sound->exact.end(), out);
  std::transform(sound->small.begin(), sound->small.end(), out,
                 [](int16_t sample) { return static_cast<float>(sample) / sixteen_bits; });
  return true;
}

void KeptSounds::keep(int64_t clip, const float* samples, int64_t count) {
  if (full_ || sounds_[static_cast<size_t>(clip)].load(std::memory_order_relaxed)) return;
  const bool small = fits_sixteen_bits(samples, count);
  const int64_t bytes = count * static_cast<int64_t>(small ? sizeof(int16_t) : sizeof(float));
  if ((bytes_of_all += bytes) > most_bytes_) {
    bytes_of_all -= bytes;
    if (!full_.exchange(true) && most_bytes_ > 0)
      log_info(
          "{:.1f} GB of decoded sound are kept in memory and no more fit: the other clips are "
          "decoded in every epoch (data.decoded_memory)",
          static_cast<double>(bytes_) / 1e9);
    return;
  }
  auto sound = std::make_unique<Sound>();
  if (small) {
    sound->small.resize(static_cast<size_t>(count));
    std::transform(samples, samples + count, sound->small.begin(),
                   [](float sample) { return static_cast<int16_t>(sample * sixteen_bits); });
  } else {
    sound->exact.assign(samples, samples + count);
  }
  bytes_ += bytes;
  Sound* nothing = nullptr;
  if (sounds_[static_cast<size_t>(clip)].compare_exchange_strong(nothing, sound.get(),
                                                                 std::memory_order_release)) {
    sound.release();
  } else {
    bytes_ -= bytes;
    bytes_of_all -= bytes;
  }
}

int64_t kept_sound_bytes(const std::optional<int64_t>& megabytes) {
  if (megabytes) return *megabytes << 20;
  return static_cast<int64_t>(available_host_memory() / 4);
}

}  // namespace tandem
