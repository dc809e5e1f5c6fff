#include "generate/clip_writer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "audio/file/write_audio.h"
#include "tandem/error.h"
#include "util/threads.h"

namespace tandem {
namespace {

int64_t count_clipped(std::span<const float> samples) {
  constexpr float top = (0x1p15F - 0.5F) / 0x1p15F;  // rounds to 32768, which 16 bits do not hold
  constexpr float bottom = -(0x1p15F + 0.5F) / 0x1p15F;
  return std::ranges::count_if(samples,
                               [](float sample) { return sample >= top || sample <= bottom; });
}

}  // namespace

void write_clip(const std::filesystem::path& folder, const ClipFormat& format,
                const at::Tensor& sound, ClipEntry& entry) {
  if (!sound.defined() || sound.dim() != 2 || sound.numel() == 0) {
    throw Error(ErrorKind::data, fmt::format("cannot write `{}`: it has no samples", entry.file));
  }
  const at::Tensor frames = sound.to(at::kFloat).t().contiguous();  // [samples, channels]
  const std::span<const float> samples(frames.const_data_ptr<float>(),
                                       static_cast<size_t>(frames.numel()));
  const auto channels = static_cast<int>(frames.size(1));
  const auto rate = static_cast<int>(format.rate);
  const std::filesystem::path file = folder / entry.file;
  if (format.name == "flac") {
    write_flac(file.string(), samples, channels, rate);
  } else {
    write_wav(file.string(), samples, channels, rate,
              format.name == "wav" ? SampleFormat::float32 : SampleFormat::pcm16);
  }
  entry.seconds = static_cast<double>(frames.size(0)) / static_cast<double>(format.rate);
  entry.channels = channels;
  entry.sample_rate = format.rate;
  entry.clipped = format.name == "wav" ? 0 : count_clipped(samples);
  entry.bytes = static_cast<int64_t>(std::filesystem::file_size(file));
  entry.checksum = file_checksum(file);
  entry.status = "done";
}

ClipWriter::ClipWriter(Options options) : options_(std::move(options)), queue_(options_.capacity) {
  const int64_t count = std::max<int64_t>(1, options_.threads);
  for (int64_t i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
}

ClipWriter::~ClipWriter() { finish(); }

void ClipWriter::put(ClipEntry entry, at::Tensor sound) {
  queue_.put({std::move(entry), std::move(sound)});
}

void ClipWriter::finish() {
  queue_.close();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void ClipWriter::work() {
  enter_worker_thread("clip writer");
  try {
    while (auto item = queue_.get()) {
      try {
        write_clip(options_.folder, options_.format, item->sound, item->entry);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::data) throw;
        item->entry.status = "failed";
        item->entry.error = error.what();
      }
      item->sound.reset();
      options_.written(std::move(item->entry));
    }
  } catch (...) {
    queue_.close();
    options_.failed(std::current_exception());
  }
}

}  // namespace tandem
