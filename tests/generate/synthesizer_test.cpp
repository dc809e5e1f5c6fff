// The whole way from text to sound with a small random model on simulated devices.
#include "tandem/synthesizer.h"

#include <gtest/gtest.h>

#include "device/simulated.h"
#include "support/captured.h"
#include "support/tiny_xtts.h"

namespace tandem {
namespace {

const std::vector<std::string> four_devices = {"/GPU:0", "/GPU:1", "/GPU:2", "/GPU:3"};

class SynthesizerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { simulate_devices(4); }

  SynthesizerOptions on(size_t devices, int64_t batch) {
    return {.devices = {four_devices.begin(), four_devices.begin() + static_cast<int>(devices)},
            .batch_size = batch};
  }
  static SpeechText text_of(const std::string& words, uint64_t seed = 3) {
    return {.text = words, .voice = {.speaker = "Ana"}, .seed = seed, .max_retries = 1};
  }

  TestFolder folder;
  std::string model = write_tiny_xtts(folder);
};

const std::vector<std::string> some_texts = {
    "Hello there.",
    "The inner winter river. Is it the other one? Yes, the other.",
    "12 boats",
    "A somewhat longer sentence that has to be cut in the middle, because the model is "
    "small and takes few tokens at once.",
    "why?",
    "One. Two. Three."};

TEST_F(SynthesizerTest, SaysTheSameWhateverTheBatchAndTheDevices) {
  std::vector<std::vector<float>> expected;
  {
    Synthesizer alone(model, on(1, 1));
    for (const std::string& words : some_texts) {
      expected.push_back(alone.speak(text_of(words)).samples);
      EXPECT_GT(expected.back().size(), 1000);
    }
    EXPECT_NE(alone.speak(text_of(some_texts[0], 4)).samples, expected[0]) << "another seed";
  }
  for (const auto& [devices, batch] : {std::pair{1, 7}, {1, 32}, {2, 3}, {4, 2}}) {
    Synthesizer many(model, on(static_cast<size_t>(devices), batch));
    EXPECT_EQ(many.devices().size(), devices);
    std::vector<std::future<Speech>> coming;
    for (size_t i = some_texts.size(); i-- > 0;)
      coming.push_back(many.submit(text_of(some_texts[i])));
    for (size_t i = some_texts.size(); i-- > 0;) {
      EXPECT_EQ(coming[some_texts.size() - 1 - i].get().samples, expected[i])
          << devices << " devices, batch " << batch << ", text " << i;
    }
  }
}

TEST_F(SynthesizerTest, TheStreamJoinedIsTheWhole) {
  Synthesizer synthesizer(model, on(1, 4));
  for (const bool compat : {false, true}) {
    SpeechText text = text_of(some_texts[1]);
    text.compat_coqui = compat;
    text.enable_text_splitting = true;
    text.max_retries = 0;
    const Speech whole = synthesizer.speak(text);
    std::vector<float> streamed;
    text.on_sound = [&](std::span<const float> part) {
      streamed.insert(streamed.end(), part.begin(), part.end());
    };
    text.stream_chunk_size = 5;
    text.first_chunk_size = 3;
    const Speech speech = synthesizer.speak(text);
    EXPECT_EQ(streamed, speech.samples);
    ASSERT_EQ(speech.samples.size(), whole.samples.size());
    double noise = 0, power = 0;
    for (size_t i = 0; i < streamed.size(); ++i) {
      noise += std::pow(double{streamed[i]} - whole.samples[i], 2);
      power += std::pow(double{whole.samples[i]}, 2);
    }
    EXPECT_LT(noise, power * 1e-9) << "90 dB";
    EXPECT_GT(speech.first_sound_seconds, 0);
    EXPECT_LT(speech.first_sound_seconds, speech.seconds);
  }
}

TEST_F(SynthesizerTest, TellsWhatItSpoke) {
  Synthesizer synthesizer(model, on(1, 4));
  SpeechText text = text_of(some_texts[1]);
  text.keep_latents = true;
  const Speech speech = synthesizer.speak(text);
  ASSERT_GE(speech.pieces.size(), 1);
  EXPECT_EQ(speech.sample_rate, 24000);
  int64_t end = 0;
  for (const SpeechPiece& piece : speech.pieces) {
    EXPECT_GE(piece.first_sample, end);
    end = piece.first_sample + piece.samples;
    EXPECT_LE(piece.codes.size(), 77);
    EXPECT_EQ(piece.latents.size(), piece.latent_rows * 64);
    const auto codes = static_cast<int64_t>(piece.codes.size());
    EXPECT_EQ(piece.latent_rows, piece.end == "stop" ? codes + 1 : codes);
  }
  EXPECT_EQ(end, static_cast<int64_t>(speech.samples.size()));
  EXPECT_EQ(synthesizer.speakers(), (std::vector<std::string>{"Ana", "Ben"}));
  EXPECT_EQ(synthesizer.languages().size(), 17);
}

TEST_F(SynthesizerTest, ClonesRecordingsAndSavedVoicesAlike) {
  Synthesizer synthesizer(model, on(1, 4));
  SpeechText text = text_of("Hello.");
  text.voice = {.files = {write_recording(folder, "a.wav"), write_recording(folder, "b.wav", 0.8)}};
  const Speech cloned = synthesizer.speak(text);
  synthesizer.save_voice(text.voice, (folder / "me.safetensors").string());
  text.voice = {.saved = (folder / "me.safetensors").string()};
  EXPECT_EQ(synthesizer.speak(text).samples, cloned.samples);
  text.voice = {.files = {write_recording(folder, "wide.wav", 1, 2, 96000)}};
  EXPECT_GT(synthesizer.speak(text).samples.size(), 1000);
}

TEST_F(SynthesizerTest, RefusesBadRequestsInOneSentence) {
  Synthesizer synthesizer(model, on(1, 2));
  const auto refusal = [&](const std::function<void(SpeechText&)>& change, ErrorKind kind) {
    SpeechText text = text_of("Hello.");
    change(text);
    const Error error = error_of([&] { synthesizer.speak(text); });
    EXPECT_EQ(error.kind(), kind) << error.what();
    const Error late = error_of([&] { synthesizer.submit(text).get(); });
    EXPECT_STREQ(late.what(), error.what());
    return std::string(error.what());
  };
  const auto voice = [](VoiceChoice choice) {
    return [choice](SpeechText& text) { text.voice = choice; };
  };
  using enum ErrorKind;
  refusal([](SpeechText& text) { text.text = " "; }, data);
  EXPECT_NE(refusal([](SpeechText& text) { text.language = "xx"; }, data).find("zh-cn"), -1UL);
  EXPECT_EQ(refusal(voice({.speaker = "Anna"}), data),
            "the model has no speaker `Anna`. Did you mean `Ana`?");
  EXPECT_EQ(refusal(voice({}), usage), "no voice was given");
  refusal(voice({.files = {"a.wav"}, .speaker = "Ana"}), usage);
  const std::string silence = write_recording(folder, "silence.wav", 1, 1, 22050, 0);
  EXPECT_NE(refusal(voice({.files = {silence}}), data).find("silent"), -1UL);
  const std::string blink = write_recording(folder, "blink.wav", 0.1);
  EXPECT_NE(refusal(voice({.files = {blink}}), data).find("0.10 s"), -1UL);
  refusal(voice({.files = {(folder / "none.wav").string()}}), io);
  refusal(voice({.files = {folder.write("text.wav", "no sound at all, only words")}}), data);
  refusal(voice({.saved = (folder / "none.safetensors").string()}), io);
  refusal([](SpeechText& text) { text.temperature = 0; }, usage);
  refusal([](SpeechText& text) { text.top_p = 1.5; }, usage);
  refusal([](SpeechText& text) { text.top_k = -1; }, usage);
  refusal([](SpeechText& text) { text.repetition_penalty = std::nan(""); }, usage);
  refusal([](SpeechText& text) { text.speed = 0; }, usage);
  refusal([](SpeechText& text) { text.stream_chunk_size = 0; }, usage);
  refusal([](SpeechText& text) { text.voice = {.files = {"a.wav"}, .max_ref_len = -1}; }, usage);
  EXPECT_GT(synthesizer.speak(text_of("Hello.")).samples.size(), 1000) << "and goes on";
}

TEST_F(SynthesizerTest, SpeaksTenThousandCharacters) {
  std::string words;
  while (words.size() < 10000) words += "the inner river. ";
  Synthesizer synthesizer(model, on(4, 16));
  SpeechText text = text_of(words);
  text.max_retries = 0;
  text.speed = 10;  // less sound to make
  const Speech speech = synthesizer.speak(text);
  EXPECT_GT(speech.pieces.size(), 100);
  std::string spoken;
  for (const SpeechPiece& piece : speech.pieces) spoken += piece.text;
  std::erase(words, ' ');
  std::erase(spoken, ' ');
  EXPECT_EQ(spoken, words);
}

TEST_F(SynthesizerTest, RefusesAFolderThatIsNotWhole) {
  for (const char* file : {"model.safetensors", "config.json", "vocab.json"}) {
    const std::string broken = write_tiny_xtts(folder, std::string("without-") + file);
    std::filesystem::remove(folder / (std::string("without-") + file) / file);
    const Error error = error_of([&] { Synthesizer none(broken, on(1, 1)); });
    EXPECT_EQ(error.kind(), ErrorKind::io) << file;
    EXPECT_NE(std::string(error.what()).find("a complete folder holds"), -1UL) << error.what();
  }
  EXPECT_EQ(error_of([&] { Synthesizer none(model, {.devices = {"/GPU:9"}}); }).kind(),
            ErrorKind::device);
  EXPECT_EQ(error_of([&] {
              Synthesizer none(model, {.devices = {"/GPU:0", "gpu:0"}});
            }).kind(),
            ErrorKind::device);
  EXPECT_EQ(error_of([&] { Synthesizer none(model, {.precision = "fp8"}); }).kind(),
            ErrorKind::usage);
  EXPECT_EQ(error_of([&] { Synthesizer none(model, {.batch_size = 0}); }).kind(), ErrorKind::usage);
}

TEST_F(SynthesizerTest, GivesUpWhatIsCancelledOrLeftBehind) {
  std::vector<std::future<Speech>> left;
  {
    Synthesizer synthesizer(model, on(1, 2));
    SpeechText text = text_of(some_texts[3]);
    text.cancel = std::make_shared<std::atomic<bool>>(true);
    EXPECT_EQ(error_of([&] { synthesizer.speak(text); }).kind(), ErrorKind::interrupted);
    for (int i = 0; i < 40; ++i) left.push_back(synthesizer.submit(text_of(some_texts[3])));
  }
  int interrupted = 0;
  for (auto& speech : left) {
    try {
      speech.get();
    } catch (const Error& error) {
      interrupted += error.kind() == ErrorKind::interrupted;
    }
  }
  EXPECT_GT(interrupted, 30);
}

}  // namespace
}  // namespace tandem
