#include "audio/file/channels.h"

#include <sndfile.h>

#include <algorithm>
#include <memory>

#include "audio/file/byte_source.h"
#include "audio/file/claims.h"
#include "audio/file/source_stream.h"

namespace tandem {
namespace {

struct Closer {
  void operator()(SNDFILE* file) const { sf_close(file); }
};

}  // namespace

ChannelSound read_channels(const std::string& path, const OpenOptions& options) {
  // Whatever a file may claim wrongly is refused here, before memory is taken.
  const std::unique_ptr<AudioFile> checked = open_audio({.path = path}, options);
  ChannelSound sound;
  sound.info = checked->info();
  const auto frames = static_cast<size_t>(sound.info.frames);
  SF_INFO opened = {};
  const std::unique_ptr<SNDFILE, Closer> file(sf_open(path.c_str(), SFM_READ, &opened));
  if (!file || opened.frames != sound.info.frames || opened.channels != sound.info.channels) {
    sound.channels.emplace_back(frames);
    checked->read_mono(0, sound.info.frames, sound.channels[0].data());
    return sound;
  }
  const auto channels = static_cast<size_t>(opened.channels);
  sound.channels.assign(channels, std::vector<float>(frames));
  const auto block = block_of_this_thread();
  const auto most = static_cast<sf_count_t>(block.size() / channels);
  for (size_t frame = 0; frame < frames;) {
    const sf_count_t got = sf_readf_float(file.get(), block.data(), most);
    if (got <= 0) {
      throw_cut_short(shown_name(path), static_cast<int64_t>(frame), sound.info.frames);
    }
    const auto end = std::min(frames, frame + static_cast<size_t>(got));
    for (size_t channel = 0; channel < channels; ++channel) {
      for (size_t i = frame; i < end; ++i)
        sound.channels[channel][i] = block[(i - frame) * channels + channel];
    }
    frame = end;
  }
  return sound;
}

}  // namespace tandem
