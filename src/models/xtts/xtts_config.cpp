#include "models/xtts/xtts_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/json_section.h"
#include "tandem/error.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

// Python writes Infinity and NaN, which are no JSON; none of our settings may be one, so they
// become null. Texts are left alone.
std::string without_bare_infinity(std::string_view json) {
  std::string strict;
  strict.reserve(json.size());
  bool in_text = false;
  for (size_t i = 0; i < json.size();) {
    const char letter = json[i];
    if (in_text) {
      const size_t step = letter == '\\' && i + 1 < json.size() ? 2 : 1;
      if (letter == '"') in_text = false;
      strict.append(json.substr(i, step));
      i += step;
      continue;
    }
    bool replaced = false;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (!json.substr(i).starts_with(word)) continue;
      strict += "null";
      i += word.size();
      replaced = true;
      break;
    }
    if (replaced) continue;
    in_text = letter == '"';
    strict += letter;
    ++i;
  }
  return strict;
}

constexpr int64_t most_tokens = int64_t{1} << 24;

void read_gpt(const JsonSection& section, XttsGptSize& gpt) {
  section.whole("gpt_layers", gpt.layers, 1, 1000);
  section.whole("gpt_n_model_channels", gpt.width, 1, 65536);
  section.whole("gpt_n_heads", gpt.heads, 1, 1024);
  if (gpt.width % gpt.heads != 0)
    section.refuse("gpt_n_heads", fmt::format("a divisor of the width, {}", gpt.width));
  section.whole("gpt_number_text_tokens", gpt.text_tokens, 1, most_tokens);
  section.whole("gpt_num_audio_tokens", gpt.audio_tokens, 3, most_tokens);
  section.whole("gpt_max_text_tokens", gpt.max_text_tokens, 1, 1'000'000);
  section.whole("gpt_max_audio_tokens", gpt.max_audio_tokens, 4, 1'000'000);
  section.whole("gpt_max_prompt_tokens", gpt.max_prompt_tokens, 0, 1'000'000);
  section.whole("gpt_start_audio_token", gpt.start_audio_token, 0, gpt.audio_tokens - 1);
  section.whole("gpt_stop_audio_token", gpt.stop_audio_token, 0, gpt.audio_tokens - 1);
  section.whole("gpt_start_text_token", gpt.start_text_token, 0, most_tokens);
  section.whole("gpt_stop_text_token", gpt.stop_text_token, 0, most_tokens);
  section.flag("gpt_use_perceiver_resampler", gpt.perceiver);
}

void read_sampling(const JsonSection& section, XttsSampling& sampling, XttsVoiceOptions& voice) {
  section.real("temperature", sampling.temperature, 0, 100);
  section.real("length_penalty", sampling.length_penalty, -100, 100);
  section.real("repetition_penalty", sampling.repetition_penalty, 0.01, 1000);
  section.whole("top_k", sampling.top_k, 0, most_tokens);
  section.real("top_p", sampling.top_p, 0, 1);
  section.real("gpt_cond_len", voice.gpt_cond_len, 0, 86400);
  section.real("gpt_cond_chunk_len", voice.gpt_cond_chunk_len, 0, 86400);
  section.real("max_ref_len", voice.max_ref_len, 0, 86400);
  section.flag("sound_norm_refs", voice.sound_norm_refs);
}

void read_languages(const JsonSection& file, XttsConfig& config) {
  if (!file.has("languages")) return;
  if (!file["languages"].is_array()) file.refuse("languages", "a list of names");
  config.languages.clear();
  for (const Json& language : file["languages"]) {
    if (!language.is_string()) file.refuse("languages", "a list of names");
    config.languages.push_back(language.get<std::string>());
  }
}

// What coqui-tts takes for what a file leaves out.
XttsConfig coqui_defaults() {
  XttsConfig config;
  config.gpt.text_tokens = config.gpt.start_text_token = config.gpt.stop_text_token = -1;
  config.gpt.audio_tokens = 8194;
  config.gpt.start_audio_token = 8192;
  config.gpt.stop_audio_token = 8193;
  config.gpt.perceiver = false;
  config.sampling.temperature = 0.85;
  config.sampling.repetition_penalty = 2.0;
  config.voice = {.gpt_cond_len = 12, .gpt_cond_chunk_len = 4, .max_ref_len = 10};
  config.languages = xtts_preset("normal").languages;
  return config;
}

}  // namespace

XttsConfig parse_xtts_config(std::string_view json, const std::string& name_for_errors) {
  const Json tree = Json::parse(without_bare_infinity(json), nullptr, false);
  if (!tree.is_object()) {
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}` is not the config.json of a model: it is no JSON object",
                            name_for_errors));
  }
  const JsonSection file(tree, "", name_for_errors);
  if (file.has("model") && file["model"] != "xtts") file.refuse("model", "\"xtts\"");
  if (!file.has("model_args")) file.refuse("model_args", "an object with the model's sizes");
  XttsConfig config = coqui_defaults();
  const JsonSection arguments(file["model_args"], "model_args", name_for_errors);
  read_gpt(arguments, config.gpt);
  arguments.whole("gpt_code_stride_len", config.code_stride, 1, 1'000'000);
  arguments.whole("input_sample_rate", config.input_rate, 1000, 1'000'000);
  arguments.whole("output_sample_rate", config.output_rate, 1000, 1'000'000);
  arguments.whole("d_vector_dim", config.speaker_embedding, 1, 65536);
  if (arguments["tokenizer_file"].is_string())
    config.tokenizer_file = arguments["tokenizer_file"].get<std::string>();
  read_sampling(file, config.sampling, config.voice);
  read_languages(file, config);
  const JsonSection ours(file["tandem"], "tandem", name_for_errors);
  ours.whole("mel_channels", config.mel_channels, 1, 4096);
  ours.whole("vocoder_width", config.vocoder_width, 1, 65536);
  ours.whole("speaker_width", config.speaker_width, 1, 65536);
  ours.whole("dvae_width", config.dvae_width, 1, 65536);
  ours.flag("keeps_endings", config.keeps_endings);
  ours.whole("longest_text", config.longest_text, 0, 1'000'000);
  return config;
}

std::string format_xtts_config(const XttsConfig& config) {
  const XttsGptSize& gpt = config.gpt;
  const auto or_null = [](int64_t value) -> Json { return value < 0 ? Json() : Json(value); };
  const nlohmann::ordered_json tree = {{"model", "xtts"},
                                       {"audio",
                                        {{"sample_rate", config.input_rate},
                                         {"output_sample_rate", config.output_rate},
                                         {"dvae_sample_rate", config.input_rate}}},
                                       {"model_args",
                                        {{"gpt_batch_size", 1},
                                         {"enable_redaction", false},
                                         {"kv_cache", true},
                                         {"tokenizer_file", ""},
                                         {"gpt_max_audio_tokens", gpt.max_audio_tokens},
                                         {"gpt_max_text_tokens", gpt.max_text_tokens},
                                         {"gpt_max_prompt_tokens", gpt.max_prompt_tokens},
                                         {"gpt_layers", gpt.layers},
                                         {"gpt_n_model_channels", gpt.width},
                                         {"gpt_n_heads", gpt.heads},
                                         {"gpt_number_text_tokens", or_null(gpt.text_tokens)},
                                         {"gpt_start_text_token", or_null(gpt.start_text_token)},
                                         {"gpt_stop_text_token", or_null(gpt.stop_text_token)},
                                         {"gpt_num_audio_tokens", gpt.audio_tokens},
                                         {"gpt_start_audio_token", gpt.start_audio_token},
                                         {"gpt_stop_audio_token", gpt.stop_audio_token},
                                         {"gpt_code_stride_len", config.code_stride},
                                         {"gpt_use_masking_gt_prompt_approach", true},
                                         {"gpt_use_perceiver_resampler", gpt.perceiver},
                                         {"input_sample_rate", config.input_rate},
                                         {"output_sample_rate", config.output_rate},
                                         {"output_hop_length", 256},
                                         {"decoder_input_dim", gpt.width},
                                         {"d_vector_dim", config.speaker_embedding},
                                         {"cond_d_vector_in_each_upsampling_layer", true}}},
                                       {"languages", config.languages},
                                       {"temperature", config.sampling.temperature},
                                       {"length_penalty", config.sampling.length_penalty},
                                       {"repetition_penalty", config.sampling.repetition_penalty},
                                       {"top_k", config.sampling.top_k},
                                       {"top_p", config.sampling.top_p},
                                       {"num_gpt_outputs", 1},
                                       {"gpt_cond_len", config.voice.gpt_cond_len},
                                       {"gpt_cond_chunk_len", config.voice.gpt_cond_chunk_len},
                                       {"max_ref_len", config.voice.max_ref_len},
                                       {"sound_norm_refs", config.voice.sound_norm_refs},
                                       {"tandem",
                                        {{"mel_channels", config.mel_channels},
                                         {"vocoder_width", config.vocoder_width},
                                         {"speaker_width", config.speaker_width},
                                         {"dvae_width", config.dvae_width},
                                         {"keeps_endings", config.keeps_endings},
                                         {"longest_text", config.longest_text}}}};
  return tree.dump(2) + "\n";
}

}  // namespace tandem
