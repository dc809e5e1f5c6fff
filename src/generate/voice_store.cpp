#include "generate/voice_store.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "tandem/error.h"
#include "util/text.h"

namespace tandem {

std::string file_state(const std::string& path) {
  struct stat state = {};
  if (::stat(path.c_str(), &state) != 0) return path + ":none";
  return fmt::format("{}:{}:{}.{}", path, state.st_size, state.st_mtim.tv_sec,
                     state.st_mtim.tv_nsec);
}

void check_voice_choice(const VoiceChoice& choice) {
  const int given = !choice.files.empty() + !choice.speaker.empty() + !choice.saved.empty();
  if (given == 1) return;
  throw Error(ErrorKind::usage, given == 0 ? "no voice was given"
                                           : "more than one kind of voice was given; expected "
                                             "recordings, a speaker's name or a saved voice")
      .hint("--voice ref.wav, --speaker NAME or --voice-file saved.safetensors");
}

VoiceStore::VoiceStore(const Xtts& model, std::filesystem::path speakers_file, size_t room)
    : model_(model), speakers_file_(std::move(speakers_file)), room_(std::max<size_t>(1, room)) {}

XttsVoiceOptions VoiceStore::options_of(const VoiceChoice& choice) const {
  XttsVoiceOptions options = model_.config.voice;
  options.gpt_cond_len = choice.gpt_cond_len.value_or(options.gpt_cond_len);
  options.gpt_cond_chunk_len = choice.gpt_cond_chunk_len.value_or(options.gpt_cond_chunk_len);
  options.max_ref_len = choice.max_ref_len.value_or(options.max_ref_len);
  options.sound_norm_refs = choice.sound_norm_refs.value_or(options.sound_norm_refs);
  const auto check = [](const char* name, double seconds) {
    if (seconds > 0 && seconds <= 3600) return;
    throw Error(ErrorKind::usage,
                fmt::format("{} is {}; expected seconds above 0 and up to 3600", name, seconds));
  };
  check("gpt_cond_len", options.gpt_cond_len);
  check("gpt_cond_chunk_len", options.gpt_cond_chunk_len);
  check("max_ref_len", options.max_ref_len);
  return options;
}

std::string voice_recipe(const VoiceChoice& choice) {
  check_voice_choice(choice);
  if (!choice.speaker.empty()) return "speaker " + choice.speaker;
  if (!choice.saved.empty()) return "saved " + file_state(choice.saved);
  std::string text = "recordings";
  const auto add = [&](const auto& option) { text += option ? fmt::format(" {}", *option) : " -"; };
  add(choice.gpt_cond_len);
  add(choice.gpt_cond_chunk_len);
  add(choice.max_ref_len);
  add(choice.sound_norm_refs);
  for (const std::string& file : choice.files) text += "\n" + file_state(file);
  return text;
}

Voice VoiceStore::get(const VoiceChoice& choice) {
  const std::string wanted = voice_recipe(choice);
  if (!choice.speaker.empty()) return named(choice.speaker);
  std::promise<Voice> promise;
  std::shared_future<Voice> voice;
  bool ours = false;
  {
    std::lock_guard lock(mutex_);
    const auto found =
        std::ranges::find_if(kept_, [&](const Kept& kept) { return kept.recipe == wanted; });
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
    } else {
      ours = true;
      kept_.push_front({.recipe = wanted, .voice = promise.get_future().share()});
      if (kept_.size() > room_) kept_.pop_back();
    }
    voice = kept_.front().voice;
  }
  if (!ours) return voice.get();
  try {
    promise.set_value(make(choice));
  } catch (...) {
    promise.set_exception(std::current_exception());
    // The next to ask tries again: the cause may be gone.
    std::lock_guard lock(mutex_);
    kept_.remove_if([&](const Kept& kept) { return kept.recipe == wanted; });
  }
  return voice.get();
}

Voice VoiceStore::make(const VoiceChoice& choice) {
  {
    std::lock_guard lock(mutex_);
    ++made_;
  }
  if (!choice.saved.empty()) {
    Voice voice = load_voice(choice.saved);
    check_voice(model_, voice, choice.saved);
    return voice;
  }
  return make_voice(model_, choice.files, options_of(choice));
}

const std::map<std::string, Voice>& VoiceStore::named_voices() {
  std::call_once(speakers_once_, [this] {
    if (!speakers_file_.empty()) speakers_ = load_speakers(speakers_file_);
  });
  return speakers_;
}

std::vector<std::string> VoiceStore::speakers() {
  std::vector<std::string> names;
  for (const auto& [name, voice] : named_voices()) names.push_back(name);
  return names;
}

Voice VoiceStore::named(const std::string& speaker) {
  const auto& voices = named_voices();
  if (voices.empty()) {
    throw Error(ErrorKind::data,
                fmt::format("the model has no speaker `{}`: its folder holds no speakers", speaker))
        .hint("give recordings with --voice");
  }
  const auto found = voices.find(speaker);
  if (found != voices.end()) {
    check_voice(model_, found->second, speaker);
    return found->second;
  }
  const std::vector<std::string> names = speakers();
  std::string sentence = fmt::format("the model has no speaker `{}`.", speaker);
  sentence += did_you_mean(speaker, names);
  throw Error(ErrorKind::data, sentence).hint("`tandem voice list --model DIR` shows them all");
}

uint64_t VoiceStore::made() const {
  std::lock_guard lock(mutex_);
  return made_;
}

}  // namespace tandem
