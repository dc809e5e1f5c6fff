#include "train/batches/decoder_batches.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "audio/signal/ragged.h"
#include "audio/signal/resample.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "tandem/error.h"

namespace tandem {
namespace {

SpeakerEncoder encoder_on(const LogicalDevice* device, const SpeakerEncoder& encoder) {
  SpeakerEncoder here = encoder;
  if (!device || device->kind() == DeviceKind::cpu) return here;
  here.list("", [&](const std::string&, at::Tensor& tensor, const Shape&, const TensorStart&) {
    if (!tensor.defined()) return;
    tensor = tensor.to(device->torch_device(), tensor.scalar_type(), /*non_blocking=*/false,
                       /*copy=*/true);
  });
  return here;
}

}  // namespace

DecoderBatches::DecoderBatches(SpeechFeed& speech, const DvaeEncoder& dvae,
                               const SpeakerEncoder& speaker, int output_rate,
                               const GptBatchOptions& options)
    : speech_(speech),
      gpt_(speech, dvae, options),
      source_(speaker),
      output_rate_(output_rate),
      memo_(speech.order, speech.corpus.index().size(), at::kFloat,
            [&](size_t) { return speaker.fc_bias.size(0); }) {
  const int given = speech.batches.options().second_rate;
  if (given == output_rate) return;
  throw Error(ErrorKind::internal,
              fmt::format("the decoder speaks at {} Hz, its feed gives sound at {} Hz", output_rate,
                          given));
}

std::unique_ptr<HostBatch> DecoderBatches::make_host_batch(bool pinned) {
  return gpt_.make_host_batch(pinned);
}

void DecoderBatches::plan(HostBatch& host, int64_t index) { gpt_.plan(host, index); }

void DecoderBatches::run_task(HostBatch& host, int task) { gpt_.run_task(host, task); }

std::vector<int64_t> DecoderBatches::largest_fields() const {
  std::vector<int64_t> largest = gpt_.largest_fields();
  largest.resize(decoder_fields);
  for (size_t bucket = 0; bucket < speech_.order.buckets().size(); ++bucket) {
    const int64_t rows = speech_.order.buckets()[bucket].rows;
    const auto grow = [&](size_t field, int64_t a_row) {
      largest[field] = std::max(largest[field], rows * a_row);
    };
    grow(decoder_waves, speech_.batches.samples_of(bucket, output_rate_));
    grow(decoder_wave_lengths, 1);
    grow(decoder_speakers, source_.fc_bias.size(0));
  }
  return largest;
}

Batch DecoderBatches::prepare(const HostBatch& host) {
  SpeechBatch speech;
  Batch batch = gpt_.prepare(host, speech);
  const at::Device device = speech.second.samples.device();
  batch.fields.push_back(speech.second.samples);
  batch.fields.push_back(row_lengths(speech.second.lengths, device));
  batch.fields.push_back(speakers_of(speech));
  return batch;
}

at::Tensor DecoderBatches::speakers_of(const SpeechBatch& speech) {
  const LogicalDevice* here = DeviceScope::current();
  if (!speaker_ || device_ != here) {
    speaker_ = encoder_on(here, source_);
    device_ = here;
    memo_.forget();
  }
  if (memo_.knows(speech)) {
    const at::Tensor kept = memo_.get(speech);
    return kept * within_rows(speech.waves.lengths, 1, kept.device());  // 0 of empty rows
  }
  const at::Tensor speakers = embed(speech);
  if (!speech_.batches.options().augments()) memo_.keep(speech, speakers);
  return speakers;
}

// As a voice is made of a recording: the 22.05 kHz sound, never louder than full scale, at 16 kHz.
// Padding would reach into the embedding, so rows are cut to whole multiples of 0.64 s and those of
// one length are embedded together; of shorter ones each alone.
at::Tensor DecoderBatches::embed(const SpeechBatch& speech) const {
  RECORD_FUNCTION("tandem::speakers", std::vector<c10::IValue>{});
  constexpr int64_t grain = 64;
  const MelOptions mel = mel_speaker_encoder();
  Waves loud = speech.waves;
  loud.samples = loud.samples.clamp(-1, 1);
  const Waves waves = resample(loud, mel.sample_rate);
  const at::Tensor mels = log_mel(waves, mel);
  const at::Tensor speakers = at::zeros({mels.size(0), source_.fc_bias.size(0)}, mels.options());
  std::map<int64_t, std::vector<int64_t>> rows_of_frames;
  for (int64_t row = 0; row < mels.size(0); ++row) {
    const int64_t frames = mel_frames(waves.lengths[static_cast<size_t>(row)], mel);
    rows_of_frames[frames < grain ? frames : frames / grain * grain].push_back(row);
  }
  for (const auto& [frames, rows] : rows_of_frames) {
    if (frames == 0) continue;
    const at::Tensor places = row_lengths(rows, mels.device());
    const at::Tensor heard = mels.index_select(0, places).narrow(2, 0, frames);
    speakers.index_copy_(0, places, (*speaker_)(heard));
  }
  return speakers;
}

}  // namespace tandem
