// What a run of the decoder stage lets people hear.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "audio/signal/griffin_lim.h"
#include "device/device_scope.h"
#include "device/registry.h"
#include "train/stages/decoder_stage.h"

namespace tandem {
namespace {

// Of one clip, without what lies behind its end.
Sample sample_of(const std::string& name, const at::Tensor& wave, int rate,
                 const std::string& text) {
  const MelOptions mel = mel_of_decoder(rate);
  Sample sample{.name = name, .wave = wave.contiguous(), .rate = rate, .mel = {}, .text = text};
  sample.mel = log_mel({sample.wave.unsqueeze(0), {sample.wave.size(0)}, rate}, mel)[0];
  return sample;
}

}  // namespace

// On the CPU, whatever prepares the batches of the run: few clips, once, and nobody is disturbed.
void DecoderStage::open_samples() {
  const DeviceScope scope(DeviceRegistry::get().cpu());
  const Fed fed = open(Use::samples, /*on_host=*/true, /*bad_list=*/"");
  const auto host = fed.batches->make_host_batch(/*pinned=*/false);
  fed.batches->plan(*host, 0);
  for (int task = 0; task < host->tasks; ++task) fed.batches->run_task(*host, task);
  sample_batch_ = fed.batches->prepare(*host);
  sample_batch_.whole_rows = sample_batch_.rows;
  for (at::Tensor& field : sample_batch_.fields) field = field.clone();  // not the maker's own
  for (const int64_t clip : sample_batch_.clips)
    texts_.emplace_back(fed.feed->corpus.index()[clip].text);
}

std::vector<Sample> DecoderStage::samples(Learner& learner) {
  auto& decoder = dynamic_cast<DecoderLearner&>(learner);
  if (config_.observe.sample_count < 1) return {};
  const at::NoGradGuard no_grad;
  const bool first = unchanging_.empty();
  if (first) open_samples();
  Batch batch = sample_batch_;
  for (at::Tensor& field : batch.fields) field = field.to(decoder.device());
  const DecoderLearner::Spoken spoken = decoder.speak_whole(batch);
  const at::Tensor generated = spoken.generated.cpu(), recorded = spoken.recorded.cpu(),
                   valid = spoken.valid.cpu();
  const int rate = parts_.xtts.config.output_rate;
  const char* side = validation_.feed ? "validation" : "training";
  std::vector<Sample> samples;
  for (int64_t row = 0; row < batch.rows; ++row) {
    const int64_t length = valid[row].item<int64_t>();
    if (length == 0) continue;
    const auto name = [&](const char* kind) {
      return fmt::format("{}/{}/{}", side, row + 1, kind);
    };
    const std::string& text = texts_[static_cast<size_t>(row)];
    const auto cut = [&](const at::Tensor& waves) { return waves[row].narrow(0, 0, length); };
    samples.push_back(sample_of(name("decoder"), cut(generated), rate, text));
    if (!first) continue;
    const Sample recording = sample_of(name("recording"), cut(recorded), rate, text);
    const at::Tensor wave = griffin_lim(recording.mel, mel_of_decoder(rate));
    unchanging_.push_back(recording);
    if (wave.numel() > 0) unchanging_.push_back(sample_of(name("griffin_lim"), wave, rate, text));
  }
  samples.insert(samples.end(), unchanging_.begin(), unchanging_.end());
  return samples;
}

}  // namespace tandem
