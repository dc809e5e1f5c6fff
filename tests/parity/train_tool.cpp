// Steps of GPT training on given batches, for tests/parity/compare_training.py. On the CPU in
// float32 with one thread.
//
//   train_tool FOLDER BATCHES STEPS LEARNING_RATE
//
// Prints `text_loss mel_loss` of each step.
#include <ATen/Parallel.h>

#include <cstdio>

#include "device/registry.h"
#include "given_training.h"
#include "tandem/devices.h"
#include "tandem/error.h"

namespace tandem {
namespace {

void run(const std::vector<std::string>& words) {
  if (words.size() != 5) throw Error(ErrorKind::usage, "FOLDER BATCHES STEPS LEARNING_RATE");
  configure_devices({});
  const GivenTraining given{.model = words[1],
                            .batches = words[2],
                            .steps = std::stoll(words[3]),
                            .learning_rate = std::stod(words[4])};
  for (const auto& [text, audio] : train_as_given(given, DeviceRegistry::get().cpu()))
    std::printf("%.9g %.9g\n", text, audio);
}

}  // namespace
}  // namespace tandem

int main(int count, char** words) {
  at::set_num_threads(1);
  try {
    tandem::run({words, words + count});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
