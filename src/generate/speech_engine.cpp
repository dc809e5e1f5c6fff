#include "generate/speech_engine.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "generate/speaking.h"
#include "generate/speech_decoder.h"
#include "generate/speech_sound.h"
#include "models/xtts/xtts.h"
#include "nn/sample.h"
#include "tandem/error.h"

namespace tandem {
namespace {

// Turns a request waits at most for others to start with it, and the share of places that need not
// be waited for.
constexpr int64_t most_turns_waited = 8;
constexpr size_t share_of_places = 32;

// With so few speakers a step of the GPT takes the whole device (nn/rows/whole_step.h).
constexpr std::ptrdiff_t few_speakers = 2;

struct Kernels {
  bool own;          // our kernels, in half precision
  std::string half;  // which
};

Kernels choose_kernels(SpeechPrecision precision, LogicalDevice& device) {
  const bool cuda = device.kind() == DeviceKind::cuda;
  const bool half = cuda && has_half_kernels(device);
  if (precision == SpeechPrecision::automatic)
    return half ? Kernels{true, "fp16"} : Kernels{false, ""};
  if (precision == SpeechPrecision::fp16 || precision == SpeechPrecision::bf16) {
    if (half) return {true, precision == SpeechPrecision::bf16 ? "bf16" : "fp16"};
    throw Error(ErrorKind::config,
                cuda ? "half precision needs a GPU of compute capability 8.0 or more; this one "
                       "speaks in fp32"
                     : "half precision needs a GPU; on the CPU speech is made in fp32")
        .hint("leave the precision at `auto`");
  }
  if (cuda) at::globalContext().setAllowTF32CuBLAS(precision == SpeechPrecision::tf32);
  return {false, ""};
}

}  // namespace

struct SpeechEngine::State {
  const Xtts& model;
  LogicalDevice& device;
  SpeechEngineOptions options;
  Kernels kernels;

  // Shared with the callers.
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<SpeakingPtr> waiting;
  bool stopping = false;
  std::exception_ptr failure;
  SpeechEngineCounters counters;

  // The engine's thread only.
  std::unique_ptr<SpeechDecoder> decoder;
  std::unique_ptr<SpeechSound> sound;
  std::vector<SpeakingPtr> places;             // who speaks at each
  std::deque<std::vector<SpeakingPtr>> calls;  // who spoke at each, for every queued call
  std::promise<void> ready;
  std::thread thread;

  State(const Xtts& m, LogicalDevice& d, const SpeechEngineOptions& o)
      : model(m), device(d), options(o), kernels(choose_kernels(o.precision, d)) {
    if (options.places < 1)
      throw Error(ErrorKind::config, "an engine needs a place for one request at least");
    places.resize(static_cast<size_t>(options.places));
    std::future<void> made = ready.get_future();
    thread = std::thread([this] { run(); });
    try {
      made.get();
    } catch (...) {
      thread.join();
      throw;
    }
  }

  ~State() {
    {
      std::lock_guard lock(mutex);
      stopping = true;
      for (const SpeakingPtr& speaking : waiting)
        speaking->fail(std::make_exception_ptr(
            Error(ErrorKind::interrupted, "the engine was closed meanwhile")));
      waiting.clear();
    }
    changed.notify_all();
    thread.join();
  }

  void run() {
    at::NoGradGuard no_gradients;
    try {
      make_parts();
    } catch (...) {
      ready.set_exception(std::current_exception());
      return;
    }
    ready.set_value();
    try {
      while (take_waiting()) turn();
    } catch (...) {
      fail_all(std::current_exception());
    }
    sound.reset();
    decoder.reset();
  }

  void make_parts() {
    decoder = kernels.own
                  ? make_cuda_decoder(model.gpt, device, options.places, kernels.half, {},
                                      options.kept_voices)
                  : make_plain_decoder(model.gpt, device, options.places, options.kept_voices);
    sound = std::make_unique<SpeechSound>(model, device, kernels.own);
  }

  void fail_all(const std::exception_ptr& error) {
    std::lock_guard lock(mutex);
    failure = error;
    for (const SpeakingPtr& speaking : waiting) speaking->fail(error);
    waiting.clear();
    for (const SpeakingPtr& speaking : places)
      if (speaking) speaking->fail(error);
    for (const auto& call : calls)
      for (const SpeakingPtr& speaking : call)
        if (speaking) speaking->fail(error);
    sound->fail_all(error);
  }

  bool anyone() const {
    return std::any_of(places.begin(), places.end(),
                       [](const auto& who) { return who != nullptr; });
  }
  bool busy() const { return anyone() || decoder->queued() > 0 || !sound->idle(); }

  bool prompts_start_now() {
    PromptsWaiting now{.places = places.size(), .waiting = waiting.size(), .turns = turns_waited};
    now.free = static_cast<size_t>(std::count(places.begin(), places.end(), nullptr));
    const auto could_start = static_cast<std::ptrdiff_t>(std::min(now.free, now.waiting));
    now.streams = std::any_of(waiting.begin(), waiting.begin() + could_start,
                              [](const auto& who) { return who->request.on_sound != nullptr; });
    const bool starts = prompts_start(now);
    turns_waited = starts || now.free == 0 ? 0 : turns_waited + 1;
    return starts;
  }

  // Gives free places to requests that wait. False when the engine is to end and nothing is left.
  bool take_waiting() {
    std::vector<DecodeStart> starts;
    {
      std::unique_lock lock(mutex);
      if (!busy()) changed.wait(lock, [&] { return stopping || !waiting.empty(); });
      const bool start = prompts_start_now();
      for (size_t place = 0; start && place < places.size() && !waiting.empty(); ++place) {
        if (places[place]) continue;
        SpeakingPtr speaking = std::move(waiting.front());
        waiting.pop_front();
        if (speaking->cancelled()) {
          --place;
          speaking->end(SpeechEnd::cancelled);
          speaking->conclude();
          continue;
        }
        begin(speaking, static_cast<int>(place));
        starts.push_back(start_of(*speaking));
        speaking->prompt.reset();
        places[place] = std::move(speaking);
      }
      const auto now = static_cast<uint64_t>(std::count_if(
          places.begin(), places.end(), [](const auto& who) { return who != nullptr; }));
      counters.peak_places = std::max(counters.peak_places, now);
      if (stopping && !busy() && starts.empty()) return false;
    }
    if (!starts.empty()) queue_start(std::move(starts));
    return true;
  }

  void begin(const SpeakingPtr& speaking, int place) {
    const int64_t most = model.gpt.size.max_new_codes(), wanted = speaking->request.max_codes;
    speaking->place = place;
    speaking->asked = 1;  // by its prompt
    speaking->max_codes = wanted > 0 ? std::min(wanted, most) : most;
    speaking->next_chunk = speaking->request.first_chunk_codes;
    speaking->result.wait_seconds = seconds_since(speaking->submitted);
  }

  DecodeStart start_of(const Speaking& speaking) const {
    const SpeechRequest& request = speaking.request;
    return {.place = speaking.place,
            .prompt = speaking.prompt,
            .sampling = request.sampling,
            .greedy = request.greedy,
            .key = draw_key(request.seed),
            .max_codes = speaking.max_codes,
            .voice_rows = request.voice.conditioning.numel() / model.gpt.size.width};
  }

  void queue_start(std::vector<DecodeStart> starts) {
    // A call each where the decoder makes several of them.
    const size_t before = decoder->queued();
    decoder->start(starts);
    for (size_t i = before; i < decoder->queued(); ++i) calls.push_back(places);
  }

  void turn() {
    const Clock::time_point start = Clock::now();
    for (const SpeakingPtr& speaking : places)
      if (speaking && speaking->cancelled()) give_up(speaking);
    uint64_t steps = 0;
    while (decoder->queued() < static_cast<size_t>(decoder->most_queued()) &&
           !first_piece_goes_first() && step())
      ++steps;
    uint64_t codes = 0;
    if (decoder->queued() > 0) codes = collect();
    const bool decoding = anyone(), pauses = first_piece_goes_first();
    sound->turn(decoding, /*waits=*/(!decoding || pauses) && decoder->queued() == 0);
    std::lock_guard lock(mutex);
    counters.steps += steps;
    counters.codes += codes;
    counters.captures = decoder->captures();
    counters.prompt_rows = decoder->prompt_rows();
    counters.busy_seconds += seconds_since(start);
  }

  // Steps behind the codes of a listener's first piece wait until its sound is there: they would
  // hold it up, and nobody waits for them. With more speakers all of them would.
  bool first_piece_goes_first() const {
    const auto speaks = [](const auto& who) { return who != nullptr; };
    const auto is_awaited = [](const auto& who) { return who && who->first_piece_comes(); };
    return std::any_of(places.begin(), places.end(), is_awaited) &&
           std::count_if(places.begin(), places.end(), speaks) <= few_speakers;
  }

  // One more code of everybody of whom more may be asked. False where that is nobody.
  bool step() {
    std::vector<int> speaking;
    for (const SpeakingPtr& who : places) {
      if (!who || who->asked >= who->max_codes) continue;
      ++who->asked;
      speaking.push_back(who->place);
    }
    if (speaking.empty()) return false;
    decoder->step(speaking);
    calls.push_back(places);
    return true;
  }

  uint64_t collect() {
    const std::vector<SpeakingPtr> who = std::move(calls.front());
    calls.pop_front();
    const std::vector<DrawnCode> drawn = decoder->collect();
    for (const DrawnCode& code : drawn) {
      const SpeakingPtr& speaking = who[static_cast<size_t>(code.place)];
      if (!speaking || speaking->decoded) continue;
      take_code(speaking, code.code);
    }
    return drawn.size();
  }

  void take_code(const SpeakingPtr& speaking, int64_t code) {
    const SpeechRequest& request = speaking->request;
    ++speaking->drawn;
    const bool stops = code == model.gpt.size.stop_audio_token;
    if (!stops) speaking->result.codes.push_back(code);
    if (stops || speaking->drawn >= speaking->max_codes) {
      speaking->end(stops ? SpeechEnd::stop_token : SpeechEnd::max_codes);
      ask_for_sound(speaking, /*last=*/true);
      places[static_cast<size_t>(speaking->place)] = nullptr;
    } else if (request.on_sound && speaking->drawn >= speaking->next_chunk) {
      speaking->next_chunk = speaking->drawn + request.chunk_codes;
      ask_for_sound(speaking, /*last=*/false);
    }
  }

  void give_up(const SpeakingPtr& speaking) {
    speaking->end(SpeechEnd::cancelled);
    speaking->conclude();
    places[static_cast<size_t>(speaking->place)] = nullptr;
  }

  void ask_for_sound(const SpeakingPtr& speaking, bool last) {
    DeviceScope scope(device);
    sound->ask(speaking, decoder->latents(speaking->place, 0, speaking->drawn), last);
  }

  int64_t turns_waited = 0;  // by requests, for others to start with them
};

bool prompts_start(const PromptsWaiting& now) {
  const bool short_of_places = now.waiting > now.free && now.free < now.places;
  const size_t enough = std::max<size_t>(1, now.places / share_of_places);
  return !short_of_places || now.free >= enough || now.streams || now.turns >= most_turns_waited;
}

SpeechEngine::SpeechEngine(const Xtts& model, LogicalDevice& device,
                           const SpeechEngineOptions& options)
    : state_(std::make_unique<State>(model, device, options)) {}

SpeechEngine::~SpeechEngine() = default;

std::future<SpeechResult> SpeechEngine::submit(SpeechRequest request) {
  auto speaking = std::make_shared<Speaking>();
  std::future<SpeechResult> result = speaking->promise.get_future();
  try {
    at::NoGradGuard no_gradients;
    check_sampling({.temperature = request.sampling.temperature,
                    .top_k = request.sampling.top_k,
                    .top_p = request.sampling.top_p,
                    .repetition_penalty = request.sampling.repetition_penalty});
    if (!(request.speed >= 0.1 && request.speed <= 10))
      throw Error(ErrorKind::config,
                  fmt::format("speed is {}; expected a number from 0.1 to 10", request.speed));
    speaking->prompt =
        state_->model.gpt.prompt(request.text_ids, request.voice.conditioning).squeeze(0);
    speaking->request = std::move(request);
    std::lock_guard lock(state_->mutex);
    if (state_->failure) std::rethrow_exception(state_->failure);
    ++state_->counters.requests;
    state_->waiting.push_back(speaking);
  } catch (...) {
    speaking->fail(std::current_exception());
  }
  state_->changed.notify_all();
  return result;
}

SpeechEngineCounters SpeechEngine::counters() const {
  std::lock_guard lock(state_->mutex);
  return state_->counters;
}

}  // namespace tandem
