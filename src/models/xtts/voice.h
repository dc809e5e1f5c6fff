// A voice: what the GPT and the vocoder are told about a speaker. Made once from reference
// recordings, or read from a folder's speakers or a saved file; then used for any number of texts.
#pragma once

#include <ATen/core/TensorBody.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "models/xtts/xtts_config.h"

namespace tandem {

struct Xtts;

struct Voice {
  at::Tensor conditioning;  // [latents (32), D] float32 on the CPU
  at::Tensor speaker;       // [512] float32 on the CPU
};

// What a voice is made through, for comparisons. Batches of one.
struct VoiceSteps {
  at::Tensor mel_cond;                   // [1, mels, frames], the pieces' mels behind each other
  std::vector<int64_t> mel_cond_frames;  // of each piece
  at::Tensor audio_16k;                  // [1, samples], of the first reference
  at::Tensor mel_speaker;                // [1, 64, frames], of the first reference
};

// From recordings of one speaker. Throws AudioError for a file that cannot be read, Error(data) for
// one that is silent or too short (0.33 s).
Voice make_voice(const Xtts& model, const std::vector<std::string>& files,
                 const XttsVoiceOptions& options, VoiceSteps* steps = nullptr);

// One recording as the model hears it: channels averaged, at the model's input rate, within [-1,
// 1], at most `seconds` of it (0: all). [samples]
at::Tensor load_reference(const std::string& file, int rate, double seconds);

// Throws Error(data) when `voice` was made by a model of other sizes.
void check_voice(const Xtts& model, const Voice& voice, const std::string& name);

// One file of ours: `gpt_cond_latent` [1, 32, D], `speaker_embedding` [1, 512, 1], metadata.
// Reading throws Error(io), or Error(corrupt) for a file that holds no voice.
void save_voice(const std::filesystem::path& path, const Voice& voice, const std::string& name);
Voice load_voice(const std::filesystem::path& path);

// All voices of speakers_xtts.pth or speakers.safetensors (`NAME/gpt_cond_latent`, …).
std::map<std::string, Voice> load_speakers(const std::filesystem::path& path);

}  // namespace tandem
