#include "generate/synthesizer_text.h"

#include <ATen/core/Tensor.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "generate/stop_control.h"
#include "tandem/error.h"
#include "util/clock.h"
#include "util/counted_random.h"

namespace tandem {
namespace {

// Seconds between pieces; each has 0.08 s of silence left at its end.
constexpr double pause_between_sentences = 0.22, pause_within_sentence = 0.04;
// Between looks at `given_up`, and at the result of a piece that streams.
constexpr auto patience = std::chrono::milliseconds(20),
               stream_patience = std::chrono::milliseconds(2);

// Sound of one piece on its way from the engine's thread to the one that speaks the text.
class SoundBox {
 public:
  void put(std::span<const float> samples) {
    std::lock_guard lock(mutex_);
    parts_.emplace_back(samples.begin(), samples.end());
    filled_.notify_one();
  }
  // Empty when none came in time.
  std::vector<float> take(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    filled_.wait_for(lock, limit, [&] { return !parts_.empty(); });
    if (parts_.empty()) return {};
    std::vector<float> part = std::move(parts_.front());
    parts_.pop_front();
    return part;
  }

 private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<std::vector<float>> parts_;
};

struct Attempt {
  PendingSpeech pending;
  std::shared_ptr<SoundBox> box;  // streamed only
  uint64_t seed = 0;
  int64_t bound = 0;
};

// What one attempt gave, after the silence was cut.
struct Spoken {
  SpeechResult result;
  std::vector<float> samples;
  AttemptReport report;
  uint64_t seed = 0;
  double silence_cut = 0;
};

class TextRun {
 public:
  TextRun(const TextToSpeak& text, const SubmitPiece& submit) : text_(text), submit_(submit) {
    speech_.sample_rate = text.sample_rate;
  }
  ~TextRun() { *cancel_ = true; }  // whatever is still being spoken is not wanted

  Speech run() {
    const size_t count = text_.pieces.size(), window = std::max<size_t>(1, text_.window);
    std::deque<Attempt> ahead;
    for (size_t next = 0, index = 0; index < count; ++index) {
      while (next < count && next < index + window) ahead.push_back(begin(next++, 0));
      Attempt first = std::move(ahead.front());
      ahead.pop_front();
      if (index > 0) add_pause(text_.pieces[index - 1]);
      speak_piece(index, std::move(first));
    }
    speech_.seconds = seconds_since(start_);
    return std::move(speech_);
  }

 private:
  bool streamed() const { return static_cast<bool>(text_.on_sound); }

  Attempt begin(size_t index, int attempt) {
    const TextPiece& piece = text_.pieces[index];
    Attempt begun;
    begun.seed = counted_draw(text_.seed, "piece", index, static_cast<uint64_t>(attempt));
    begun.bound =
        text_.stop_control ? code_bound(piece.characters, text_.max_codes) : text_.max_codes;
    SpeechRequest request{.text_ids = piece.ids,
                          .voice = text_.voice,
                          .sampling = text_.sampling,
                          .greedy = text_.greedy,
                          .seed = begun.seed,
                          .max_codes = begun.bound,
                          .speed = text_.speed,
                          .on_sound = {},
                          .first_chunk_codes = text_.first_chunk_size,
                          .chunk_codes = text_.stream_chunk_size,
                          .cancel = cancel_,
                          .keep_latents = text_.keep_latents};
    if (streamed()) {
      begun.box = std::make_shared<SoundBox>();
      request.on_sound = [box = begun.box](std::span<const float> samples) { box->put(samples); };
    }
    begun.pending = submit_(std::move(request));
    return begun;
  }

  void stop_if_given_up() {
    if (!text_.given_up()) return;
    throw Error(ErrorKind::interrupted, "the speech was given up before it was done");
  }

  void give(std::span<const float> samples) {
    if (samples.empty()) return;
    speech_.samples.insert(speech_.samples.end(), samples.begin(), samples.end());
    if (!streamed()) return;
    if (speech_.first_sound_seconds == 0) speech_.first_sound_seconds = seconds_since(start_);
    text_.on_sound(samples);
  }

  void add_pause(const TextPiece& before) {
    if (!text_.stop_control) return;
    const double seconds = before.ends_sentence ? pause_between_sentences : pause_within_sentence;
    give(std::vector<float>(static_cast<size_t>(seconds * text_.sample_rate)));
  }

  // Until it is spoken; its sound, silence cut, goes to `sink` as it comes.
  Spoken finish(const TextPiece& piece, Attempt attempt, const SilenceCutter::Sink& sink) {
    SilenceCutter cutter(text_.sample_rate, sink);
    const auto pass = [&](std::span<const float> samples) {
      text_.stop_control ? cutter.push(samples) : sink(samples);
    };
    std::future<SpeechResult>& result = attempt.pending.result;
    while (true) {
      stop_if_given_up();
      if (!attempt.box) {
        if (result.wait_for(patience) == std::future_status::ready) break;
        continue;
      }
      // Everything is in the box before the result is there.
      const bool ready = result.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
      const std::vector<float> part =
          attempt.box->take(ready ? stream_patience * 0 : stream_patience);
      pass(part);
      if (ready && part.empty()) break;
    }
    Spoken spoken{.result = result.get(), .samples = {}, .report = {}, .seed = attempt.seed};
    if (spoken.result.end == SpeechEnd::cancelled) stop_if_given_up();
    if (!attempt.box) pass(spoken.result.samples);
    cutter.finish();
    spoken.silence_cut = cutter.cut_seconds();
    if (text_.stop_control) {
      spoken.report = judge_attempt({.codes = spoken.result.codes,
                                     .stopped = spoken.result.end == SpeechEnd::stop_token,
                                     .characters = piece.characters,
                                     .longest_pause = cutter.longest_pause(),
                                     .tail_silence = cutter.tail_silence(),
                                     .codes_a_second = text_.codes_a_second});
    }
    return spoken;
  }

  void speak_piece(size_t index, Attempt attempt) {
    const TextPiece& piece = text_.pieces[index];
    SpeechPiece told{.text = piece.text,
                     .normalised = piece.normalised,
                     .text_ids = piece.ids,
                     .first_sample = static_cast<int64_t>(speech_.samples.size())};
    Spoken best;
    if (streamed()) {
      best = finish(piece, std::move(attempt),
                    [this](std::span<const float> samples) { give(samples); });
    } else {
      best = best_attempt(index, std::move(attempt), told);
      give(best.samples);
    }
    told.samples = static_cast<int64_t>(speech_.samples.size()) - told.first_sample;
    told.codes = std::move(best.result.codes);
    told.seed = best.seed;
    told.end = best.result.end == SpeechEnd::stop_token ? "stop" : "length";
    told.troubles = std::move(best.report.troubles);
    told.silence_cut = best.silence_cut;
    if (best.result.latents.defined()) {
      const at::Tensor latents = best.result.latents.to(at::kCPU, at::kFloat).contiguous();
      const float* first = latents.const_data_ptr<float>();
      told.latents.assign(first, first + latents.numel());
      told.latent_rows = latents.size(0);
    }
    speech_.pieces.push_back(std::move(told));
  }

  Spoken best_attempt(size_t index, Attempt attempt, SpeechPiece& told) {
    const bool may_retry = text_.stop_control && !text_.greedy;
    const int retries = may_retry ? text_.max_retries : 0;
    Spoken best;
    for (int number = 0;; ++number) {
      std::vector<float> samples;
      Spoken spoken = finish(text_.pieces[index], std::move(attempt), [&](auto part) {
        samples.insert(samples.end(), part.begin(), part.end());
      });
      spoken.samples = std::move(samples);
      told.attempts = number + 1;
      if (number > 0) {
        // The one that is not kept is remembered by its troubles.
        const AttemptReport& worse =
            spoken.report.cost < best.report.cost ? best.report : spoken.report;
        told.other_troubles.insert(told.other_troubles.end(), worse.troubles.begin(),
                                   worse.troubles.end());
      }
      if (number == 0 || spoken.report.cost < best.report.cost) best = std::move(spoken);
      if (best.report.troubles.empty() || number >= retries) return best;
      attempt = begin(index, number + 1);
    }
  }

  const TextToSpeak& text_;
  const SubmitPiece& submit_;
  const Clock::time_point start_ = Clock::now();
  const std::shared_ptr<std::atomic<bool>> cancel_ = std::make_shared<std::atomic<bool>>(false);
  Speech speech_;
};

}  // namespace

Speech speak_text(const TextToSpeak& text, const SubmitPiece& submit) {
  return TextRun(text, submit).run();
}

}  // namespace tandem
