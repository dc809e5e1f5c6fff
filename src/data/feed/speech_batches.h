// Speech as batches. On the host: read, decode, turn the text into ids; a clip that cannot be used
// is counted and replaced by another of its bucket. On the data device: resample, trim, bring to
// one loudness, make mels.
#pragma once

#include <atomic>
#include <optional>

#include "audio/file/audio_file.h"
#include "audio/signal/mel.h"
#include "audio/signal/waves.h"
#include "data/corpus/bad_files.h"
#include "data/corpus/clip_cache.h"
#include "data/corpus/speech_corpus.h"
#include "data/feed/batch_maker.h"
#include "data/feed/kept_sounds.h"
#include "data/order/batch_order.h"

namespace tandem {

// Fields of its batches. Lengths count what is no padding; empty rows have length 0.
enum SpeechField : size_t {
  speech_tokens,         // [B, T] int64, 0 beyond
  speech_token_lengths,  // [B] int64
  speech_mels,           // [B, mels, F] float32, 0 beyond
  speech_mel_lengths,    // [B] int64
  speech_waves,          // [B, S] float32, 0 beyond; only where asked for
  speech_wave_lengths,   // [B] int64; likewise
};

// No sample is louder after bringing clips to one loudness.
constexpr double loudest_peak = 0.99;

struct SpeechOptions {
  int sample_rate = 22050;
  MelOptions mel = mel_default();
  std::optional<double> trim_top_db;   // silence at both ends goes
  std::optional<double> target_lufs;   // loudness
  std::optional<double> noise_snr_db;  // white noise on every clip, another one each epoch
  double pitch_semitones = 0;          // each clip shifted by up to this, up or down
  double jitter_ms = 0;                // each clip begins up to so much later
  bool waves = false;                  // also give the samples
  int second_rate = 0;  // and once more at this rate, made from the file's own; 0: no. Only with
                        // `waves`, and only in a SpeechBatch
  bool native = true;   // our own WAV reader
  bool on_host =
      false;  // the data device is the CPU: a clip is finished by the thread that read it
  const ClipCache* cache = nullptr;  // mels made before; used when it holds every clip
  KeptSounds* kept = nullptr;        // of clips that were decoded before
  uint64_t seed = 0;

  // What is made of a clip is another each epoch, and not worth keeping.
  bool augments() const { return noise_snr_db || pitch_semitones > 0 || jitter_ms > 0; }
};

// A batch with what the host knows of it, for makers that add to it. Tensors are on the device of
// the open DeviceScope.
struct SpeechBatch {
  Batch batch;
  size_t bucket = 0;
  int64_t epoch = 0;
  std::vector<int64_t> token_lengths, mel_lengths;
  Waves waves;   // [B, samples_of(bucket)]; where asked for
  Waves second;  // [B, samples_of(bucket, second_rate)]; likewise. Noise is not added to it.
};

// All that decides what mels a clip gets, as one number: the key under which they are cached.
uint64_t mel_recipe(const SpeechOptions& options);

class SpeechBatches final : public BatchMaker {
 public:
  // All of them must outlive it.
  SpeechBatches(const SpeechCorpus& corpus, const BatchOrder& order, BadFiles& bad,
                const SpeechOptions& options);

  std::unique_ptr<HostBatch> make_host_batch(bool pinned) override;
  void plan(HostBatch& host, int64_t index) override;
  void run_task(HostBatch& host, int task) override;  // one row
  std::vector<int64_t> largest_fields() const override;
  Batch prepare(const HostBatch& host) override { return make(host).batch; }
  SpeechBatch make(const HostBatch& host);

  const SpeechOptions& options() const { return options_; }
  // What run_task put into a row, a replacement perhaps; -1: nothing.
  int64_t clip_of(const HostBatch& host, int row) const;
  size_t bucket_of(const HostBatch& host) const;

  // Shape of a bucket's batches.
  int64_t samples_of(size_t bucket) const { return samples_of(bucket, options_.sample_rate); }
  int64_t samples_of(size_t bucket, int rate) const;
  int64_t frames_of(size_t bucket) const;
  int64_t native_reads() const { return native_reads_; }
  int64_t general_reads() const { return general_reads_; }
  bool cached() const { return mels_from_ == MelsFrom::cache; }

 private:
  struct Row;
  struct HostSpeech;
  bool load_clip(HostSpeech& host, int task, int64_t clip);
  void load_sound(HostSpeech& host, int task, int64_t clip);
  enum class MelsFrom { device, host_threads, cache };
  MelsFrom choose_source() const;
  void read_mels(HostSpeech& host, int task, int64_t clip) const;
  void make_mels(HostSpeech& host, int task, int64_t row);
  float* mel_row(HostSpeech& host, int task, int64_t frames) const;
  void read_samples(int64_t row, float* out);
  void note_general(const AudioInfo& info, const std::string& path);
  Waves resampled(const HostSpeech& host, const at::Tensor& raw, int rate) const;
  void shape(const HostSpeech& host, Waves& waves, Waves& second) const;
  Waves filled_up(Waves waves, size_t bucket) const;
  SpeechBatch finish(const HostSpeech& host, const at::Tensor& mels,
                     std::vector<int64_t> frames) const;

  const SpeechCorpus& corpus_;
  const BatchOrder& order_;
  BadFiles& bad_;
  const SpeechOptions options_;
  MelsFrom mels_from_ = MelsFrom::device;
  uint64_t recipe_ = 0;
  std::vector<int64_t> widest_;  // of each bucket: frames of its longest clip, at its own rate
  std::atomic<int64_t> native_reads_{0}, general_reads_{0};
};

}  // namespace tandem
