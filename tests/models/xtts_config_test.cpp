#include "models/xtts/xtts_config.h"

#include <gtest/gtest.h>

#include "util/scratch.h"

namespace tandem::tests {
namespace {

std::string refusal(const std::string& json) {
  const Thrown thrown = thrown_by([&] { parse_xtts_config(json, "config.json"); });
  EXPECT_EQ(thrown.kind, "corrupt") << thrown.sentence;
  return thrown.sentence;
}

}  // namespace

TEST(XttsConfig, NormalIsExactlyV2) {
  const XttsConfig config = xtts_preset("normal");
  EXPECT_EQ(config.gpt.layers, 30);
  EXPECT_EQ(config.gpt.width, 1024);
  EXPECT_EQ(config.gpt.heads, 16);
  EXPECT_EQ(config.gpt.text_tokens, 6681);
  EXPECT_EQ(config.gpt.audio_tokens, 1026);
  EXPECT_EQ(config.gpt.max_new_codes(), 602);
  EXPECT_EQ(config.languages.size(), 17u);
  EXPECT_EQ(config.sampling.repetition_penalty, 5.0);
}

TEST(XttsConfig, EveryPresetFitsItself) {
  int64_t before = 0;
  for (const char* name : {"tiny", "small", "normal", "big"}) {
    const XttsConfig config = xtts_preset(name);
    EXPECT_EQ(config.gpt.width % config.gpt.heads, 0) << name;
    EXPECT_LT(config.gpt.start_text_token, config.gpt.text_tokens) << name;
    EXPECT_LT(config.gpt.stop_audio_token, config.gpt.audio_tokens) << name;
    EXPECT_GT(config.gpt.layers * config.gpt.width * config.gpt.width, before) << name;
    before = config.gpt.layers * config.gpt.width * config.gpt.width;
  }
  const Thrown thrown = thrown_by([] { xtts_preset("smal"); });
  EXPECT_EQ(thrown.kind, "config");
  EXPECT_TRUE(contains(thrown.sentence, "Did you mean `small`?")) << thrown.sentence;
}

TEST(XttsConfig, WhatIsWrittenIsReadBack) {
  XttsConfig config = xtts_preset("tiny");
  config.sampling = {.temperature = 0.6, .repetition_penalty = 3, .top_k = 20, .top_p = 0.9};
  config.voice = {
      .gpt_cond_len = 12, .gpt_cond_chunk_len = 6, .max_ref_len = 10, .sound_norm_refs = true};
  EXPECT_FALSE(parse_xtts_config(format_xtts_config(config), "config.json").keeps_endings);
  config.keeps_endings = true;
  const XttsConfig read = parse_xtts_config(format_xtts_config(config), "config.json");
  EXPECT_EQ(format_xtts_config(read), format_xtts_config(config));
  EXPECT_TRUE(read.keeps_endings);
  EXPECT_EQ(read.gpt.start_text_token, config.gpt.start_text_token);
  EXPECT_TRUE(read.gpt.perceiver);
  EXPECT_EQ(read.vocoder_width, 32);
  EXPECT_EQ(read.sampling.top_k, 20);
  EXPECT_TRUE(read.voice.sound_norm_refs);
}

TEST(XttsConfig, TakesPythonsInfinityAndNaN) {
  const XttsConfig config = parse_xtts_config(
      R"({"model": "xtts", "max_audio_len": Infinity, "a": -Infinity, "b": NaN,
          "text": "Infinity, \" NaN", "languages": ["NaN"],
          "model_args": {"gpt_layers": 3, "gpt_start_text_token": null}})",
      "config.json");
  EXPECT_EQ(config.gpt.layers, 3);
  EXPECT_EQ(config.languages, std::vector<std::string>{"NaN"});
}

TEST(XttsConfig, WhatIsLeftOutIsWhatCoquiTakes) {
  const XttsConfig config = parse_xtts_config(R"({"model_args": {}})", "config.json");
  EXPECT_EQ(config.gpt.start_text_token, -1);
  EXPECT_EQ(config.gpt.stop_text_token, -1);
  EXPECT_EQ(config.gpt.text_tokens, -1);
  EXPECT_EQ(config.gpt.audio_tokens, 8194);
  EXPECT_FALSE(config.gpt.perceiver);
  EXPECT_EQ(config.sampling.temperature, 0.85);
  EXPECT_EQ(config.sampling.repetition_penalty, 2.0);
  EXPECT_EQ(config.voice.gpt_cond_len, 12);
  EXPECT_EQ(config.languages.size(), 17u);
}

TEST(XttsConfig, NamesTheKeyThatIsWrong) {
  EXPECT_EQ(refusal("[]"), "`config.json` is not the config.json of a model: it is no JSON object");
  EXPECT_EQ(refusal("{\"a\":"),
            "`config.json` is not the config.json of a model: it is no JSON object");
  EXPECT_EQ(refusal(R"({"model": "vits", "model_args": {}})"),
            "`config.json`: model is \"vits\"; expected \"xtts\"");
  EXPECT_EQ(refusal("{}"),
            "`config.json`: model_args is missing; expected an object with "
            "the model's sizes");
  EXPECT_EQ(refusal(R"({"model_args": []})"),
            "`config.json`: model_args is something else; expected an object");
  EXPECT_EQ(refusal(R"({"model_args": {"gpt_layers": "many"}})"),
            "`config.json`: model_args.gpt_layers is \"many\"; expected a whole number from 1 to "
            "1000");
  EXPECT_EQ(refusal(R"({"model_args": {"gpt_layers": 2.5}})"),
            "`config.json`: model_args.gpt_layers is 2.5; expected a whole number from 1 to 1000");
  EXPECT_EQ(refusal(R"({"model_args": {"gpt_n_model_channels": 1e300}})"),
            "`config.json`: model_args.gpt_n_model_channels is 1e+300; expected a whole number "
            "from 1 to 65536");
  EXPECT_EQ(refusal(R"({"model_args": {"gpt_n_heads": 7}})"),
            "`config.json`: model_args.gpt_n_heads is 7; expected a divisor of the width, 1024");
  EXPECT_EQ(refusal(R"({"model_args": {"gpt_use_perceiver_resampler": 1}})"),
            "`config.json`: model_args.gpt_use_perceiver_resampler is 1; expected true or false");
  EXPECT_EQ(refusal(R"({"model_args": {}, "temperature": -1})"),
            "`config.json`: temperature is -1; expected a number from 0 to 100");
  EXPECT_EQ(refusal(R"({"model_args": {}, "languages": "en"})"),
            "`config.json`: languages is \"en\"; expected a list of names");
}

}  // namespace tandem::tests
