// Writes what a run leaves to look at, for compare_tensorboard.py: observe_tool FOLDER.
//
// Twelve steps in two starts, the second of which takes back steps 9 and 10 of the first; then a
// report of it all.
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "observe/event_file.h"
#include "observe/metrics_file.h"
#include "observe/report.h"
#include "observe/run_events.h"
#include "observe/sample_files.h"

namespace {

using namespace tandem;

SampleReport sample_of(int64_t step) {
  SampleReport sample{.step = step,
                      .name = "sentence/1",
                      .rate = 24000,
                      .mels = 80,
                      .frames = 120,
                      .text = "Größe </script><script>alert(1)</script>"};
  for (int i = 0; i < 24000; ++i)
    sample.wave.push_back(0.5F * std::sin(0.05F * static_cast<float>(i)));
  for (int i = 0; i < 80 * 120; ++i) sample.mel.push_back(static_cast<float>(i % 97));
  return sample;
}

void one_start(const std::filesystem::path& run, int64_t first, int64_t last) {
  MetricsFile metrics(run / "metrics.jsonl", first);
  RunEvents events(run / "events.jsonl");
  events.add(beginning_event(first, 12));
  EventFile tensorboard(run / "tensorboard", first);
  for (int64_t step = first + 1; step <= last; ++step) {
    const double loss = 1.0 / static_cast<double>(step) + static_cast<double>(first);
    metrics.add({.step = step, .loss = loss, .terms = {{"a \"term\" <b>", 2 * loss}}});
    tensorboard.scalar(step, "train/loss", loss);
    if (step % 4 != 0) continue;
    const SampleReport sample = sample_of(step);
    const WrittenSample written = write_sample(run, sample);
    tensorboard.audio(step, "samples/sentence/1/sound",
                      {sample.rate, static_cast<int64_t>(sample.wave.size()), written.wav});
    tensorboard.image(step, "samples/sentence/1/mel", {written.height, written.width, written.png});
    tensorboard.text(step, "samples/sentence/1/text", sample.text);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("use: observe_tool FOLDER\n", stderr);
    return 2;
  }
  try {
    const std::filesystem::path run = argv[1];
    std::filesystem::create_directories(run);
    one_start(run, 0, 10);
    one_start(run, 8, 12);
    write_report(run);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "observe_tool: %s\n", error.what());
    return 1;
  }
}
