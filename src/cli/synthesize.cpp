#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "audio/file/write_audio.h"
#include "cli/command.h"
#include "cli/session.h"
#include "cli/synthesize_many.h"
#include "cli/synthesize_options.h"
#include "generate/speech_jobs.h"
#include "tandem/error.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/signals.h"

namespace tandem {
namespace {

// 16-bit little-endian, as write_wav rounds.
void write_pcm(std::span<const float> samples) {
  std::vector<int16_t> numbers(samples.size());
  std::ranges::transform(samples, numbers.begin(), [](float sample) {
    return static_cast<int16_t>(std::clamp(std::round(sample * 0x1p15F), -0x1p15F, 0x1p15F - 1));
  });
  const size_t written = std::fwrite(numbers.data(), sizeof(int16_t), numbers.size(), stdout);
  if (written != numbers.size() || std::fflush(stdout) != 0) {
    throw Error(ErrorKind::io, "cannot write to standard output");
  }
}

Speech speak_until_stopped(Synthesizer& synthesizer, SpeechText text) {
  text.cancel = std::make_shared<std::atomic<bool>>(false);
  std::future<Speech> speech = synthesizer.submit(text);
  while (speech.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
    if (stop_requested() != StopRequest::none) *text.cancel = true;
  }
  try {
    return speech.get();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::interrupted) throw;
    const bool told = stop_requested() == StopRequest::terminated;
    throw Error(told ? ErrorKind::terminated : ErrorKind::interrupted,
                "interrupted; nothing was written");
  }
}

void write_sound(const std::string& path, const Speech& speech) {
  if (path.ends_with(".flac")) {
    write_flac(path, speech.samples, 1, speech.sample_rate);
  } else {
    write_wav(path, speech.samples, 1, speech.sample_rate, SampleFormat::pcm16);
  }
}

nlohmann::ordered_json piece_json(const SpeechPiece& piece) {
  return {{"text", piece.text},
          {"normalised", piece.normalised},
          {"tokens", piece.text_ids.size()},
          {"codes", piece.codes.size()},
          {"seed", piece.seed},
          {"attempts", piece.attempts},
          {"end", piece.end},
          {"troubles", piece.troubles},
          {"other_troubles", piece.other_troubles},
          {"first_sample", piece.first_sample},
          {"samples", piece.samples},
          {"silence_cut", piece.silence_cut}};
}

struct Timing {
  double load = 0, voice = 0;  // seconds
};

void print_json(const SynthesizeRequest& request, const Synthesizer& synthesizer,
                const Speech& speech, const Timing& timing) {
  nlohmann::ordered_json document = {{"output", request.output},
                                     {"language", request.standard.language},
                                     {"seed", request.standard.seed},
                                     {"sample_rate", speech.sample_rate},
                                     {"seconds", speech.sound_seconds()},
                                     {"work_seconds", speech.seconds},
                                     {"rtf", speech.seconds / speech.sound_seconds()},
                                     {"times_real_time", speech.sound_seconds() / speech.seconds},
                                     {"load_seconds", timing.load},
                                     {"voice_seconds", timing.voice},
                                     {"devices", synthesizer.devices()},
                                     {"pieces", nlohmann::ordered_json::array()}};
  for (const SpeechPiece& piece : speech.pieces) document["pieces"].push_back(piece_json(piece));
  print(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void report(const SynthesizeRequest& request, const Speech& speech) {
  for (const SpeechPiece& piece : speech.pieces) {
    for (const std::string& trouble : piece.troubles) {
      log_warning("`{}` came out with {} after {} attempts", piece.text, trouble, piece.attempts);
    }
  }
  const std::string first =
      request.stream ? fmt::format(", first after {:.0f} ms", 1000 * speech.first_sound_seconds)
                     : "";
  log_info("{:.2f} s of speech in {:.2f} s ({:.1f}x real time{}), {} {}{}{}",
           speech.sound_seconds(), speech.seconds, speech.sound_seconds() / speech.seconds, first,
           speech.pieces.size(), speech.pieces.size() == 1 ? "piece" : "pieces",
           request.output.empty() ? "" : " -> ", request.output);
}

int speak_one(const SynthesizeRequest& request) {
  Timing timing;
  Clock::time_point start = Clock::now();
  Synthesizer synthesizer(request.model, request.synthesizer);
  timing.load = seconds_since(start);
  start = Clock::now();
  synthesizer.prepare_voice(request.standard.voice);
  timing.voice = seconds_since(start);
  SpeechText text = request.standard;
  text.keep_latents = !request.save_latents.empty();
  if (request.stream) text.on_sound = write_pcm;
  const Speech speech = speak_until_stopped(synthesizer, text);
  if (!request.output.empty()) write_sound(request.output, speech);
  if (!request.save_codes.empty()) save_codes(request.save_codes, speech);
  if (!request.save_latents.empty()) save_latents(request.save_latents, speech);
  if (request.json) print_json(request, synthesizer, speech, timing);
  report(request, speech);
  return 0;
}

int run_synthesize(const Arguments& arguments) {
  const SynthesizeRequest request = synthesize_request(arguments);
  configure_or_stop(speech_device_request(arguments));
  catch_stop_signals();
  return request.lines_file.empty() ? speak_one(request) : speak_many(request);
}

}  // namespace

Command synthesize_command() {
  return {
      .name = "synthesize",
      .summary = "speak text with an XTTS model",
      .rest = "",
      .details =
          "  tandem synthesize --model xtts_v2 --text \"Hello.\" --voice me.wav -o hello.wav\n"
          "  tandem synthesize --model xtts_v2 --language de --speaker NAME --stream < a.txt |\n"
          "      aplay -f S16_LE -r 24000\n"
          "  tandem synthesize --model xtts_v2 --text-file book.csv --voice me.wav -o book\n\n"
          "Many texts (.txt with -o DIR, .csv, .tsv, .jsonl) give one sound each and\n"
          "manifest.jsonl; the same command again speaks what is missing, failed or changed.\n"
          "Columns: text, and if wanted id, language, speaker, voice.\n\n"
          "A piece that went on after its end, fell silent or repeats itself is spoken again\n"
          "with another seed; --compat coqui leaves everything as the model gives it.",
      .settings = 0,
      .chooses_devices = true,
      .options = synthesize_options(),
      .run = run_synthesize};
}

}  // namespace tandem
