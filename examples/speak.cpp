// The smallest program that speaks:  speak MODEL_FOLDER VOICE.wav TEXT OUT.f32
// OUT.f32 holds 32-bit float samples, mono, at 24 kHz.
#include <cstdio>
#include <exception>

#include "tandem/devices.h"
#include "tandem/synthesizer.h"

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s MODEL_FOLDER VOICE.wav TEXT OUT.f32\n", argv[0]);
    return 2;
  }
  try {
    tandem::configure_devices({});  // all GPUs; without one the CPU speaks
    tandem::Synthesizer synthesizer(argv[1]);
    const tandem::Speech speech =
        synthesizer.speak({.text = argv[3], .language = "en", .voice = {.files = {argv[2]}}});
    std::FILE* out = std::fopen(argv[4], "wb");
    if (out == nullptr) throw std::runtime_error("cannot write the output");
    std::fwrite(speech.samples.data(), sizeof(float), speech.samples.size(), out);
    std::fclose(out);
    std::printf("%.2f s of speech in %.2f s\n", speech.sound_seconds(), speech.seconds);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
