#include "tandem/synthesizer.h"

#include <fmt/format.h>

#include "generate/synthesizer_engines.h"
#include "generate/synthesizer_threads.h"
#include "generate/text_pieces.h"
#include "generate/voice_store.h"
#include "models/xtts/trained_stages.h"
#include "models/xtts/xtts.h"
#include "tandem/error.h"
#include "text/clean.h"
#include "util/text.h"
#include "util/log.h"

namespace tandem {
namespace {

void check_range(const char* name, double value, bool holds, const char* expected) {
  if (holds) return;  // false for NaN
  throw Error(ErrorKind::usage, fmt::format("{} is {}; expected {}", name, value, expected));
}

XttsSampling sampling_of(const SpeechText& text, XttsSampling sampling) {
  sampling.temperature = text.temperature.value_or(sampling.temperature);
  sampling.length_penalty = text.length_penalty.value_or(sampling.length_penalty);
  sampling.repetition_penalty = text.repetition_penalty.value_or(sampling.repetition_penalty);
  sampling.top_k = text.top_k.value_or(sampling.top_k);
  sampling.top_p = text.top_p.value_or(sampling.top_p);
  const auto within = [](double value, double above, double most) {
    return value > above && value <= most;
  };
  check_range("temperature", sampling.temperature, within(sampling.temperature, 0, 100),
              "a number above 0 and up to 100");
  check_range("repetition_penalty", sampling.repetition_penalty,
              within(sampling.repetition_penalty, 0, 1000), "a number above 0 and up to 1000");
  check_range("top_k", static_cast<double>(sampling.top_k),
              sampling.top_k >= 0 && sampling.top_k <= 65536, "0 (all) to 65536");
  check_range("top_p", sampling.top_p, within(sampling.top_p, 0, 1),
              "a number above 0 and up to 1");
  return sampling;
}

void check_options(const SpeechText& text) {
  check_range("speed", text.speed, text.speed >= 0.1 && text.speed <= 10, "0.1 to 10");
  check_range("max_retries", text.max_retries, text.max_retries >= 0 && text.max_retries <= 100,
              "0 to 100");
  const auto codes = [](const char* name, int64_t count) {
    check_range(name, static_cast<double>(count), count >= 1 && count <= 100000,
                "1 to 100000 codes");
  };
  codes("stream_chunk_size", text.stream_chunk_size);
  codes("first_chunk_size", text.first_chunk_size);
}

}  // namespace

struct Synthesizer::State {
  State(const std::string& path, const SynthesizerOptions& options)
      : folder(XttsFolder::open(path)),
        tokenizer(load_tokenizer(folder.vocabulary_file.string())),
        model(Xtts::load(folder)),
        precision(options.precision),
        voices(model, folder.speakers_file),
        engines(model, options) {
    std::vector<std::string> untrained;
    const std::set<std::string> trained = trained_stages(folder.path);
    for (const char* stage : {"gpt", "decoder"})
      if (!trained.contains(stage)) untrained.emplace_back(stage);
    if (!untrained.empty())
      log_warning("`{}` is no voice yet: its {} was not trained (trained.json), so it speaks noise",
                  folder.path.string(), join(untrained, " and its "));
  }
  ~State() { closing = true; }  // what is spoken sees it, before the threads are waited for

  // All that needs no voice, on the caller's thread: rules of a language are read once a thread.
  TextToSpeak prepare(const SpeechText& text) const {
    check_options(text);
    check_voice_choice(text.voice);
    const XttsConfig& config = model.config;
    return {.pieces =
                make_text_pieces(text.text,
                                 {.language = text.language,
                                  .languages = config.languages,
                                  .split = text.enable_text_splitting.value_or(!text.compat_coqui),
                                  .coqui = text.compat_coqui,
                                  .keeps_endings = config.keeps_endings,
                                  .longest = text.compat_coqui ? 0 : config.longest_text,
                                  .token_limit = config.gpt.max_text_tokens,
                                  .token_rows = model.gpt.text_embedding.size(0)},
                                 *tokenizer),
            .voice = {},
            .sampling = sampling_of(text, config.sampling),
            .greedy = !text.do_sample,
            .stop_control = !text.compat_coqui,
            .seed = text.seed,
            .speed = text.speed,
            .max_retries = text.max_retries,
            .keep_latents = text.keep_latents,
            .on_sound = text.on_sound,
            .stream_chunk_size = text.stream_chunk_size,
            .first_chunk_size = text.first_chunk_size,
            .max_codes = config.gpt.max_new_codes(),
            .sample_rate = config.output_rate,
            .codes_a_second =
                static_cast<double>(config.input_rate) / static_cast<double>(config.code_stride),
            .window = engines.places() + 1,
            .given_up = [this, cancel = text.cancel] { return closing || (cancel && *cancel); }};
  }

  Speech speak(TextToSpeak& prepared, const VoiceChoice& choice) {
    if (prepared.given_up()) {
      throw Error(ErrorKind::interrupted, "the speech was given up before it began");
    }
    prepared.voice = voices.get(choice);
    return speak_text(prepared,
                      [this](SpeechRequest request) { return engines.submit(std::move(request)); });
  }

  XttsFolder folder;
  std::unique_ptr<const Tokenizer> tokenizer;
  Xtts model;
  std::string precision;
  VoiceStore voices;
  SpeechEngines engines;
  std::atomic<bool> closing{false};
  TextThreads threads;  // last: gone before what its tasks use
};

Synthesizer::Synthesizer(const std::string& model_folder, const SynthesizerOptions& options)
    : state_(std::make_unique<State>(model_folder, options)) {}
Synthesizer::~Synthesizer() = default;

Speech Synthesizer::speak(const SpeechText& text) {
  TextToSpeak prepared = state_->prepare(text);
  return state_->speak(prepared, text.voice);
}

std::future<Speech> Synthesizer::submit(SpeechText text) {
  struct Task {
    TextToSpeak text;
    VoiceChoice voice;
    std::promise<Speech> promise;
  };
  auto task = std::make_shared<Task>();
  std::future<Speech> future = task->promise.get_future();
  try {
    task->text = state_->prepare(text);
    task->voice = std::move(text.voice);
  } catch (...) {
    task->promise.set_exception(std::current_exception());
    return future;
  }
  state_->threads.run([state = state_.get(), task] {
    try {
      task->promise.set_value(state->speak(task->text, task->voice));
    } catch (...) {
      task->promise.set_exception(std::current_exception());
    }
  });
  return future;
}

void Synthesizer::prepare_voice(const VoiceChoice& voice) { state_->voices.get(voice); }

void Synthesizer::save_voice(const VoiceChoice& voice, const std::string& path) {
  const std::string name = !voice.speaker.empty() ? voice.speaker
                           : !voice.saved.empty() ? voice.saved
                           : voice.files.empty()  ? ""
                                                  : voice.files.front();
  tandem::save_voice(path, state_->voices.get(voice), std::filesystem::path(name).stem().string());
}

std::vector<std::string> Synthesizer::speakers() const { return state_->voices.speakers(); }

std::vector<std::string> Synthesizer::languages() const {
  if (!state_->model.config.languages.empty()) return state_->model.config.languages;
  std::vector<std::string> codes;
  for (const Language& language : tandem::languages()) codes.push_back(language.code);
  return codes;
}

std::vector<std::string> Synthesizer::devices() const { return state_->engines.devices(); }
int Synthesizer::sample_rate() const { return state_->model.config.output_rate; }

std::string Synthesizer::identity() const {
  std::string text = state_->precision;
  for (const auto& file : {state_->folder.weights_file, state_->folder.vocabulary_file,
                           state_->folder.path / "config.json", state_->folder.speakers_file}) {
    text += "\n" + file_state(file.string());
  }
  return text;
}

}  // namespace tandem
