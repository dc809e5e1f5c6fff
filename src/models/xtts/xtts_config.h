// What an XTTS model is, as its folder's config.json says (model_args, audio, sampling defaults).
// Sizes that the weights themselves show are read from their shapes, not from here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct XttsGptSize {
  int64_t layers = 30, width = 1024, heads = 16;
  int64_t text_tokens = 6681;      // rows of the text embedding
  int64_t audio_tokens = 1026;     // codes, start and stop
  int64_t max_text_tokens = 402;   // positions: 2 more
  int64_t max_audio_tokens = 605;  // positions: 3 more
  int64_t max_prompt_tokens = 70;
  int64_t start_audio_token = 1024, stop_audio_token = 1025;
  int64_t start_text_token = 261, stop_text_token = 0;
  bool perceiver = true;  // v2; v1 has one conditioning vector instead
  // Codes of one piece of speech at most: 602 of XTTS v2.
  int64_t max_new_codes() const { return max_audio_tokens - 3; }
};

// Sampling as the folder asks for it. The names are Coqui's.
struct XttsSampling {
  double temperature = 0.75;
  double length_penalty = 1.0;  // read and kept; without beams it has no effect
  double repetition_penalty = 5.0;
  int64_t top_k = 50;
  double top_p = 0.85;
};

struct XttsVoiceOptions {
  double gpt_cond_len = 30;       // seconds of the references, joined, for the conditioning
  double gpt_cond_chunk_len = 4;  // in pieces of this many seconds
  double max_ref_len = 30;        // seconds of each reference for the speaker embedding
  bool sound_norm_refs = false;   // references scaled to a peak of 0.75 first
};

struct XttsConfig {
  XttsGptSize gpt;
  XttsSampling sampling;
  XttsVoiceOptions voice;
  int input_rate = 22050, output_rate = 24000;
  int64_t code_stride = 1024;  // samples at input_rate of one code
  int64_t mel_channels = 80;
  // Widths of what Coqui builds in; from scratch only.
  int64_t vocoder_width = 512, speaker_width = 32, dvae_width = 512, speaker_embedding = 512;
  // Texts are spoken with the marks at their ends, as they were learned. XTTS v2 goes on talking
  // after some of them, and is given texts without.
  bool keeps_endings = false;
  // Characters of the longest texts it learned, where it learned from nothing: longer ones are
  // spoken in parts. 0: not known, as of XTTS v2.
  int64_t longest_text = 0;
  std::vector<std::string> languages;
  std::string tokenizer_file;  // used where the folder has no vocab.json; often empty
};

// tiny, small, normal (exactly XTTS v2) or big. Throws Error(config).
XttsConfig xtts_preset(const std::string& name);

// config.json of a Coqui folder (bare Infinity and NaN allowed) or of ours. What a file leaves out
// is what coqui-tts takes then, which is not always XTTS v2's. Null token ids and a null number of
// text tokens are left at -1: the vocabulary has them. Throws Error(corrupt) that names the key.
XttsConfig parse_xtts_config(std::string_view json, const std::string& name_for_errors);
std::string format_xtts_config(const XttsConfig& config);  // loads in coqui-tts too

}  // namespace tandem
