#include "models/musicgen/musicgen_config.h"

#include <gtest/gtest.h>

#include "models/musicgen/musicgen.h"
#include "models/musicgen_expected.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

// The sizes of musicgen-small, as transformers writes them without what is default.
std::string published(const std::string& text = "", const std::string& codec = "",
                      const std::string& decoder = "") {
  return R"({"model_type": "musicgen", "text_encoder": {"model_type": "t5", "d_model": 768,
      "num_layers": 12, "num_heads": 12, "d_ff": 3072)" +
         text + R"(}, "audio_encoder": {"model_type": "encodec", "sampling_rate": 32000,
      "num_filters": 64, "upsampling_ratios": [8, 5, 4, 4], "codebook_size": 2048,
      "target_bandwidths": [2.2], "use_causal_conv": false, "use_conv_shortcut": false,
      "chunk_length_s": null)" +
         codec + R"(}, "decoder": {"model_type": "musicgen_decoder")" + decoder + "}}";
}

MusicgenConfig read(const std::string& config, const std::string& generation = "") {
  const TestFolder folder;
  folder.write("config.json", config);
  if (!generation.empty()) folder.write("generation_config.json", generation);
  return MusicgenConfig::read(folder.path());
}

// "kind: sentence" without the folder's name.
std::string refusal(const std::string& config, const std::string& generation = "") {
  const TestFolder folder;
  folder.write("config.json", config);
  if (!generation.empty()) folder.write("generation_config.json", generation);
  const Thrown thrown = thrown_by([&] { MusicgenConfig::read(folder.path()); });
  std::string sentence = thrown.sentence;
  for (size_t at; (at = sentence.find(folder.path().string())) != sentence.npos;)
    sentence.replace(at, folder.path().string().size(), "DIR");
  return thrown.kind + ": " + sentence;
}

void expect_equal(const MusicgenConfig& a, const MusicgenConfig& b) {
  EXPECT_EQ(a.text.width, b.text.width);
  EXPECT_EQ(a.text.layers, b.text.layers);
  EXPECT_EQ(a.text.heads, b.text.heads);
  EXPECT_EQ(a.text.head_width, b.text.head_width);
  EXPECT_EQ(a.text.inner, b.text.inner);
  EXPECT_EQ(a.text.vocabulary, b.text.vocabulary);
  EXPECT_EQ(a.codec.rate, b.codec.rate);
  EXPECT_EQ(a.codec.filters, b.codec.filters);
  EXPECT_EQ(a.codec.ratios, b.codec.ratios);
  EXPECT_EQ(a.codec.codebook_size, b.codec.codebook_size);
  EXPECT_EQ(a.codec.codebook_width, b.codec.codebook_width);
  EXPECT_EQ(a.codec.codebooks, b.codec.codebooks);
  EXPECT_EQ(a.codec.causal, b.codec.causal);
  EXPECT_EQ(a.codec.shortcut_conv, b.codec.shortcut_conv);
  EXPECT_EQ(a.decoder.width, b.decoder.width);
  EXPECT_EQ(a.decoder.layers, b.decoder.layers);
  EXPECT_EQ(a.decoder.heads, b.decoder.heads);
  EXPECT_EQ(a.decoder.inner, b.decoder.inner);
  EXPECT_EQ(a.decoder.codebooks, b.decoder.codebooks);
  EXPECT_EQ(a.decoder.channels, b.decoder.channels);
  EXPECT_EQ(a.decoder.vocabulary, b.decoder.vocabulary);
  EXPECT_EQ(a.decoder.positions, b.decoder.positions);
  EXPECT_EQ(a.decoder.pad_token, b.decoder.pad_token);
}

}  // namespace

TEST(MusicgenConfig, WhatTheFileLeavesOutIsTransformersDefault) {
  const MusicgenConfig config = read(published());
  expect_equal(config, Musicgen::config_of("small"));
  EXPECT_EQ(config.codec.hop(), 640);
  EXPECT_EQ(config.codec.frame_rate(), 50);
  EXPECT_EQ(config.codec.codebooks, 4);
  EXPECT_EQ(config.decoder.pad_token, 2048);
  EXPECT_EQ(config.decoder.activation, "gelu");
  EXPECT_EQ(config.text.activation, "relu");
  EXPECT_FALSE(config.text.gated);
  EXPECT_TRUE(config.defaults.sample);
  EXPECT_EQ(config.defaults.top_k, 50);
  EXPECT_EQ(config.defaults.guidance_scale, 3.0);
  EXPECT_EQ(config.defaults.max_length, 1500);
}

TEST(MusicgenConfig, ReadsStereoAndLarger) {
  expect_equal(read(published("", "",
                              R"(, "hidden_size": 2048, "num_hidden_layers": 48,
      "num_attention_heads": 32, "ffn_dim": 8192, "num_codebooks": 8, "audio_channels": 2)")),
               Musicgen::config_of("stereo-large"));
  const MusicgenConfig medium = Musicgen::config_of("medium");
  EXPECT_EQ(medium.decoder.width, 1536);
  EXPECT_EQ(medium.decoder.head_width(), 64);
  EXPECT_EQ(medium.decoder.layers, 48);
  EXPECT_EQ(Musicgen::config_of("stereo-small").decoder.codebooks_a_channel(), 4);
}

TEST(MusicgenConfig, ReadsWhatTransformersSaved) {
  const MusicgenConfig odd = MusicgenConfig::read(musicgen_fixture("odd"));
  EXPECT_EQ(odd.text.width, 11);
  EXPECT_EQ(odd.text.head_width, 5);
  EXPECT_EQ(odd.text.buckets, 12);
  EXPECT_EQ(odd.text.max_distance, 9);
  EXPECT_EQ(odd.text.norm_eps, 1e-5);
  EXPECT_EQ(odd.codec.ratios, (std::vector<int64_t>{5, 3, 2}));
  EXPECT_EQ(odd.codec.codebooks, 3);
  EXPECT_EQ(odd.codec.trim_right, 0.6);
  EXPECT_TRUE(odd.codec.causal);
  EXPECT_TRUE(odd.codec.shortcut_conv);
  EXPECT_EQ(odd.decoder.positions, 60);
  EXPECT_EQ(odd.decoder.pad_token, 32);
  const MusicgenConfig stereo = MusicgenConfig::read(musicgen_fixture("stereo"));
  EXPECT_TRUE(stereo.text.gated);
  EXPECT_EQ(stereo.text.activation, "gelu_new");
  EXPECT_EQ(stereo.decoder.channels, 2);
  EXPECT_EQ(stereo.decoder.codebooks, 8);
  EXPECT_EQ(stereo.codec.channels, 1);
}

TEST(MusicgenConfig, TakesWishesFromTheGenerationConfig) {
  const MusicgenConfig config = read(published(), R"({"do_sample": false, "guidance_scale": 4.5,
      "temperature": 0.5, "top_k": 250, "top_p": 0.9, "max_length": 256, "bos_token_id": 7,
      "decoder_start_token_id": 2047})");
  EXPECT_FALSE(config.defaults.sample);
  EXPECT_EQ(config.defaults.guidance_scale, 4.5);
  EXPECT_EQ(config.defaults.temperature, 0.5);
  EXPECT_EQ(config.defaults.top_k, 250);
  EXPECT_EQ(config.defaults.top_p, 0.9);
  EXPECT_EQ(config.defaults.max_length, 256);
  EXPECT_EQ(config.decoder.pad_token, 2047) << "what starts a row also fills its gaps";
}

TEST(MusicgenConfig, RefusesWhatIsNoMusicgen) {
  EXPECT_EQ(refusal(R"({"model_type": "musicgen_melody"})"),
            "config: `DIR` is a melody model (musicgen_melody), which Tandem cannot generate with");
  EXPECT_EQ(refusal(R"({"model_type": "bark"})"),
            "config: `DIR` is no MusicGen model: its model_type is \"bark\"");
  EXPECT_EQ(refusal("{}"), "config: `DIR` is no MusicGen model: its model_type is not given");
  EXPECT_EQ(refusal("["), "corrupt: `DIR/config.json` is no JSON object");
  EXPECT_EQ(refusal(published(), "3"), "corrupt: `DIR/generation_config.json` is no JSON object");
  EXPECT_EQ(refusal(R"({"model_type": 3})"),
            "corrupt: `DIR/config.json`: model_type is 3; expected a text");
  EXPECT_EQ(refusal(R"({"model_type": "musicgen"})"),
            "corrupt: `DIR/config.json`: text_encoder is missing; expected an object with sizes");
  const TestFolder folder;
  EXPECT_EQ(thrown_by([&] { MusicgenConfig::read(folder.path()); }).kind, "io");
}

TEST(MusicgenConfig, RefusesPartsThatAreNotBuilt) {
  const auto text = [](const std::string& more) { return refusal(published(", " + more)); };
  const auto codec = [](const std::string& more) { return refusal(published("", ", " + more)); };
  EXPECT_EQ(text(R"("model_type": "clap")"),
            "config: `DIR/config.json`: text_encoder.model_type is \"clap\"; Tandem reads text "
            "encoders of the kind \"t5\"");
  EXPECT_EQ(text(R"("feed_forward_proj": "gated-tanh")"),
            "config: `DIR/config.json`: text_encoder.feed_forward_proj is \"gated-tanh\"; Tandem "
            "reads relu, gelu, gelu_new and silu, gated or not");
  EXPECT_EQ(codec(R"("model_type": "dac")"),
            "config: `DIR/config.json`: audio_encoder.model_type is \"dac\"; Tandem reads codecs "
            "of the kind \"encodec\"");
  EXPECT_EQ(codec(R"("norm_type": "time_group_norm")"),
            "config: `DIR/config.json`: audio_encoder.norm_type is \"time_group_norm\"; Tandem "
            "reads codecs with \"weight_norm\"");
  EXPECT_EQ(codec(R"("normalize": true)"),
            "config: `DIR/config.json`: audio_encoder.normalize is true; Tandem reads codecs that "
            "do not normalize loudness");
  EXPECT_EQ(codec(R"("chunk_length_s": 1.0)"),
            "config: `DIR/config.json`: audio_encoder.chunk_length_s is 1.0; Tandem reads codecs "
            "without chunks");
  EXPECT_EQ(codec(R"("pad_mode": "circular")"),
            "config: `DIR/config.json`: audio_encoder.pad_mode is \"circular\"; Tandem reads "
            "\"reflect\", \"constant\" and \"replicate\"");
  EXPECT_EQ(refusal(published("", "", R"(, "activation_function": "mish")")),
            "config: `DIR/config.json`: decoder.activation_function is \"mish\"; Tandem reads "
            "relu, gelu, gelu_new and silu");
}

TEST(MusicgenConfig, NamesTheSizeThatCannotBe) {
  const auto text = [](const std::string& more) { return refusal(published(", " + more)); };
  const auto codec = [](const std::string& more) { return refusal(published("", ", " + more)); };
  const auto decoder = [](const std::string& more) {
    return refusal(published("", "", ", " + more));
  };
  const std::string file = "corrupt: `DIR/config.json`: ";
  EXPECT_EQ(decoder(R"("hidden_size": "wide")"),
            file + "decoder.hidden_size is \"wide\"; expected a whole number from 4 to 65536");
  EXPECT_EQ(decoder(R"("num_hidden_layers": 2.5)"),
            file + "decoder.num_hidden_layers is 2.5; expected a whole number from 1 to 1000");
  EXPECT_EQ(decoder(R"("num_attention_heads": 7)"),
            file + "decoder.num_attention_heads is 7; expected a divisor of the width, 1024");
  EXPECT_EQ(decoder(R"("num_codebooks": 3, "audio_channels": 2)"),
            file + "decoder.num_codebooks is 3; expected the same number for both channels");
  EXPECT_EQ(decoder(R"("num_codebooks": 6)"),
            file + "the decoder has 6 codebooks a channel; the codec has 4");
  EXPECT_EQ(decoder(R"("vocab_size": 4096)"),
            file + "the decoder speaks 4096 codes; the codec knows 2048");
  EXPECT_EQ(decoder(R"("vocab_size": 512)"),
            file + "the start token is 2048; expected one of the decoder's 513 embeddings");
  EXPECT_EQ(decoder(R"("scale_embedding": 1)"),
            file + "decoder.scale_embedding is 1; expected true or false");
  EXPECT_EQ(codec(R"("upsampling_ratios": [8, 0])"),
            file +
                "audio_encoder.upsampling_ratios is [8,0]; expected up to 12 whole numbers "
                "from 1 to 1000");
  EXPECT_EQ(codec(R"("upsampling_ratios": 8)"),
            file + "audio_encoder.upsampling_ratios is 8; expected a list of numbers");
  EXPECT_EQ(codec(R"("target_bandwidths": [0.1])"),
            file +
                "audio_encoder.target_bandwidths is [0.1]; expected bands of 1 to 1024 "
                "codebooks");
  EXPECT_EQ(codec(R"("codebook_dim": 64)"),
            file + "audio_encoder.codebook_dim is 64; expected the hidden size, 128");
  EXPECT_EQ(codec(R"("trim_right_ratio": 2)"),
            file + "audio_encoder.trim_right_ratio is 2; expected a number from 0 to 1");
  EXPECT_EQ(refusal(published("", R"(, "audio_channels": 2)",
                              R"(, "audio_channels": 2, "num_codebooks": 8)")),
            file + "a stereo decoder needs a codec of one channel");
  EXPECT_EQ(text(R"("relative_attention_max_distance": 8)"),
            file +
                "text_encoder.relative_attention_max_distance is 8; expected more than a "
                "quarter of the 32 buckets");
  EXPECT_EQ(text(R"("feed_forward_proj": 1)"),
            file + "text_encoder.feed_forward_proj is 1; expected a text");
  EXPECT_EQ(refusal(published(), R"({"top_p": 2})"),
            "corrupt: `DIR/generation_config.json`: top_p is 2; expected a number from 0 to 1");
}

TEST(MusicgenConfig, KnowsThePublishedSizesByName) {
  const Thrown thrown = thrown_by([] { Musicgen::config_of("smal"); });
  EXPECT_EQ(thrown.kind, "config");
  EXPECT_EQ(thrown.sentence,
            "there is no MusicGen of size `smal`; expected one of tiny, small, medium, large, "
            "stereo-tiny, stereo-small, stereo-medium, stereo-large. Did you mean `small` or "
            "`stereo-small`?");
}

TEST(MusicgenConfig, CountsTheParametersOfThePublishedModels) {
  const MusicgenCounts small = count_parameters(Musicgen::config_of("small"));
  // t5-base's encoder; facts of the decoder (419.6 M) and its projection.
  EXPECT_EQ(small.text, 109'628'544);
  EXPECT_EQ(small.decoder, 419'584'000 + 787'456);
  EXPECT_EQ(count_parameters(Musicgen::config_of("large")).decoder / 1'000'000, 3256);
  EXPECT_EQ(count_parameters(Musicgen::config_of("medium")).decoder / 1'000'000, 1838);
}

}  // namespace tandem::tests
