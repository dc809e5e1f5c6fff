// 64 callers at once, many of whom change their mind. TANDEM_SOAK_SECONDS sets the length.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <thread>
#include <unistd.h>

#include "device/simulated.h"
#include "support/tiny_xtts.h"
#include "tandem/error.h"
#include "tandem/synthesizer.h"
#include "util/clock.h"
#include "util/counted_random.h"

namespace tandem {
namespace {

double soak_seconds() {
  const char* text = std::getenv("TANDEM_SOAK_SECONDS");
  return text ? std::atof(text) : 3;
}

int64_t resident_bytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

SpeechText text_number(uint64_t number) {
  static const std::vector<std::string> texts = {
      "Hello.", "The other river in the winter.", "One. Two? Three!",
      "A sentence of some length that has to be cut in two by the small model.", "12"};
  return {.text = texts[number % texts.size()],
          .voice = {.speaker = number % 2 ? "Ana" : "Ben"},
          .seed = number,
          .max_retries = static_cast<int>(number % 2)};
}

struct Counts {
  std::atomic<int64_t> done{0}, given_up{0}, wrong{0}, streamed_wrong{0};
};

// One caller: a text at a time, alone or streamed, some of them given up at a random moment.
void call(Synthesizer& synthesizer, const std::vector<Speech>& expected, uint64_t caller,
          const std::atomic<bool>& over, Counts& counts) {
  for (uint64_t turn = 0; !over; ++turn) {
    const uint64_t draw = counted_draw(7, "turn", caller, turn);
    const uint64_t number = draw % expected.size();
    SpeechText text = text_number(number);
    text.cancel = std::make_shared<std::atomic<bool>>(false);
    std::vector<float> heard;
    const bool streamed = draw >> 10 & 1 && text.max_retries == 0;
    if (streamed) {
      text.on_sound = [&](auto part) { heard.insert(heard.end(), part.begin(), part.end()); };
    }
    std::future<Speech> coming = synthesizer.submit(text);
    if ((draw >> 20) % 3 == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds((draw >> 30) % 60000));
      *text.cancel = true;
    }
    try {
      const Speech speech = coming.get();
      ++counts.done;
      if (streamed) {
        counts.streamed_wrong += heard != speech.samples;
        counts.wrong += speech.samples.size() != expected[number].samples.size();
      } else {
        counts.wrong += speech.samples != expected[number].samples;
      }
      for (size_t i = 0; i < speech.pieces.size(); ++i) {
        counts.wrong += speech.pieces[i].codes != expected[number].pieces[i].codes;
      }
    } catch (const Error& error) {
      counts.wrong += error.kind() != ErrorKind::interrupted;
      ++counts.given_up;
    }
  }
}

TEST(SynthesizerSoak, SixtyFourCallersGetTheirOwnSoundAndMemoryStaysFlat) {
  simulate_devices(2);
  TestFolder folder;
  const std::string model = write_tiny_xtts(folder);
  std::vector<Speech> expected;
  {
    Synthesizer alone(model, {.devices = {"/GPU:0"}, .batch_size = 1});
    for (uint64_t i = 0; i < 10; ++i) expected.push_back(alone.speak(text_number(i)));
  }
  Synthesizer synthesizer(model, {.devices = {"/GPU:0", "/GPU:1"}, .batch_size = 16});
  Counts counts;
  std::atomic<bool> over{false};
  std::vector<std::thread> callers;
  for (uint64_t i = 0; i < 64; ++i) {
    callers.emplace_back([&, i] { call(synthesizer, expected, i, over, counts); });
  }
  const double seconds = soak_seconds();
  const auto wait = [](double s) { std::this_thread::sleep_for(std::chrono::duration<double>(s)); };
  wait(seconds / 2);
  const int64_t before = resident_bytes();
  wait(seconds / 2);
  const int64_t after = resident_bytes();
  over = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(counts.wrong, 0);
  EXPECT_EQ(counts.streamed_wrong, 0);
  EXPECT_GT(counts.done, 20);
  EXPECT_GT(counts.given_up, 0);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // their own memory grows
  EXPECT_LT(after - before, int64_t{64} << 20) << "grew from " << before << " bytes";
#endif
  std::printf("%ld spoken, %ld given up, %ld MiB, then %ld MiB\n", counts.done.load(),
              counts.given_up.load(), before >> 20, after >> 20);
}

}  // namespace
}  // namespace tandem
