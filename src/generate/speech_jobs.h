// Many lines of text to a folder of sounds, through all devices of a synthesizer. What a line
// sounds like depends on its text, voice, options and (seed, name) only; a rerun speaks what is
// missing, failed or changed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "generate/speech_jobs_lines.h"
#include "tandem/synthesizer.h"

namespace tandem {

struct SpeechJobProgress {
  int64_t total = 0, done = 0, skipped = 0, failed = 0;  // lines; done counts all three
  double sound_seconds = 0, work_seconds = 0;            // of this run
};

struct SpeechJobOptions {
  std::string folder;
  // Options, language and voice of lines that have none of their own; `seed` is that of the whole.
  SpeechText standard = {};
  std::string latents_folder = {}, codes_folder = {};              // a safetensors file a line
  int64_t batch_size = 16;                                         // texts at once on one device
  std::function<void(const SpeechJobProgress&)> on_progress = {};  // every now and then
  std::function<bool()> stop = [] { return false; };
};

// Writes <name>.wav and manifest.jsonl. A line that cannot be spoken is recorded and counted.
// Throws Error(io) when the folder cannot be written, Error(interrupted) after `stop`; what is done
// stays done.
SpeechJobProgress speak_lines(Synthesizer& synthesizer, const std::vector<SpeechLine>& lines,
                              const SpeechJobOptions& options);

// The seed of one line; below 2^53, so that any JSON reader keeps it whole.
uint64_t line_seed(uint64_t seed, const std::string& name);

// Codes and ids of each piece (`codes.0`, `text_ids.0`), or latents (`latents.0`), with the texts
// as metadata. Throws Error(io).
void save_codes(const std::string& path, const Speech& speech);
void save_latents(const std::string& path, const Speech& speech);

}  // namespace tandem
