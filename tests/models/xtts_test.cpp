#include "models/xtts/xtts.h"

#include <gtest/gtest.h>

#include <set>

#include "models/xtts_narrow.h"
#include "nn/model_parts.h"
#include "nn/tensors.h"
#include "support/captured.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

NamedTensors tensors_of(Xtts& model) {
  NamedTensors tensors;
  model.visit(
      [&](const std::string& name, at::Tensor& tensor) { tensors.emplace_back(name, tensor); });
  return tensors;
}

// A folder opened by hand: what stands in it is this test's business.
XttsFolder folder_of(const TestFolder& place, const NamedTensors& tensors) {
  put(place / "model.safetensors", format_safetensors(tensors, {}));
  XttsFolder folder;
  folder.path = place.path();
  folder.config = narrow_config();
  folder.weights_file = place / "model.safetensors";
  return folder;
}

NamedTensors without(const NamedTensors& tensors, const std::string& part) {
  NamedTensors kept;
  for (const auto& [name, tensor] : tensors)
    if (name.find(part) == std::string::npos) kept.emplace_back(name, tensor);
  return kept;
}

NamedTensors with(NamedTensors tensors, const std::string& name, const at::Tensor& value) {
  for (auto& [other, tensor] : tensors)
    if (other == name) tensor = value;
  return tensors;
}

std::string sentence_of(const NamedTensors& tensors) {
  const TestFolder place;
  const Thrown thrown = thrown_by([&] { Xtts::load(folder_of(place, tensors)); });
  EXPECT_EQ(thrown.kind, "corrupt");
  return thrown.sentence;
}

}  // namespace

TEST(Xtts, NormalIsExactlyVersionTwo) {
  const XttsCounts counts = count_parameters(xtts_preset("normal"));
  EXPECT_EQ(counts.gpt, 441018563);
  EXPECT_EQ(counts.vocoder, 17818208);
  EXPECT_EQ(counts.speaker_encoder, 8028492);
}

TEST(Xtts, PresetsGrow) {
  int64_t before = 0;
  for (const char* name : {"tiny", "small", "normal", "big"}) {
    const int64_t parameters = count_parameters(xtts_preset(name)).gpt;
    EXPECT_GT(parameters, 4 * before / 3) << name;
    before = parameters;
  }
}

TEST(Xtts, MadeHasTheCountedParametersAndSpeaks) {
  const at::NoGradGuard no_grad;
  const XttsConfig config = xtts_preset("tiny");
  Xtts model = Xtts::make(config, 3);
  int64_t gpt = 0;
  model.visit([&](const std::string& name, at::Tensor& tensor) {
    if (name.starts_with("gpt.")) gpt += tensor.numel();
    EXPECT_FALSE(tensor.requires_grad()) << name;
  });
  EXPECT_EQ(gpt, count_parameters(config).gpt);
  const at::Tensor latents = model.gpt.latents({5, 6}, {1, 2, 3}, at::ones({32, 64}));
  const at::Tensor sound = model.vocoder(latents, at::ones({1, 512}));
  EXPECT_EQ(sound.size(1), 13 * 256);
  EXPECT_GT(number(sound.std()), 0);
}

TEST(Xtts, SeedsDecideWeights) {
  const XttsConfig config = narrow_config();
  Xtts one = Xtts::make(config, 1), same = Xtts::make(config, 1), other = Xtts::make(config, 2);
  EXPECT_TRUE(same_bits(one.gpt.blocks[1].qkv_weight, same.gpt.blocks[1].qkv_weight));
  EXPECT_FALSE(same_bits(one.gpt.blocks[1].qkv_weight, other.gpt.blocks[1].qkv_weight));
}

TEST(Xtts, VisitsUnderCoquisNames) {
  Xtts model = narrow_xtts();
  std::set<std::string> names;
  model.visit([&](const std::string& name, at::Tensor&) { names.insert(name); });
  for (const char* name :
       {"mel_stats", "gpt.text_embedding.weight", "gpt.mel_pos_embedding.emb.weight",
        "gpt.gpt.h.2.attn.c_proj.bias", "gpt.gpt.ln_f.weight", "gpt.final_norm.bias",
        "gpt.mel_head.weight", "gpt.conditioning_encoder.attn.5.proj_out.weight",
        "gpt.conditioning_perceiver.latents", "gpt.conditioning_perceiver.layers.1.0.to_kv.weight",
        "gpt.conditioning_perceiver.layers.1.1.2.bias", "gpt.conditioning_perceiver.norm.gamma",
        "hifigan_decoder.waveform_decoder.conv_post.weight",
        "hifigan_decoder.waveform_decoder.ups.3.weight",
        "hifigan_decoder.waveform_decoder.resblocks.11.convs2.2.bias",
        "hifigan_decoder.waveform_decoder.conds.0.weight",
        "hifigan_decoder.speaker_encoder.layer2.0.downsample.1.running_var",
        "hifigan_decoder.speaker_encoder.attention.3.weight"}) {
    EXPECT_TRUE(names.count(name)) << name;
  }
  EXPECT_FALSE(names.count("hifigan_decoder.waveform_decoder.conv_post.bias"));
}

TEST(Xtts, LoadsWhatItVisited) {
  const TestFolder place;
  Xtts model = narrow_xtts();
  const NamedTensors before = tensors_of(model);
  Xtts loaded = Xtts::load(folder_of(place, before));
  const NamedTensors after = tensors_of(loaded);
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].first, before[i].first);
    EXPECT_TRUE(same_bits(after[i].second, before[i].second)) << before[i].first;
  }
  EXPECT_EQ(loaded.config.gpt.text_tokens, 37);
}

TEST(Xtts, ListsAllThatIsMissing) {
  Xtts model = narrow_xtts();
  const std::string sentence =
      sentence_of(without(without(tensors_of(model), "h.1.mlp.c_fc"), "conds.2"));
  EXPECT_TRUE(contains(sentence, "holds no XTTS model")) << sentence;
  for (const char* name : {"`gpt.gpt.h.1.mlp.c_fc.weight`", "`gpt.gpt.h.1.mlp.c_fc.bias`",
                           "`hifigan_decoder.waveform_decoder.conds.2.weight`",
                           "`hifigan_decoder.waveform_decoder.conds.2.bias`"}) {
    EXPECT_TRUE(contains(sentence, name)) << sentence;
  }
}

// Sizes are read from some of the tensors; without them the others must not be blamed.
TEST(Xtts, NamesEachMissingTensorWhereverSizesAreReadFrom) {
  Xtts model = narrow_xtts();
  const NamedTensors all = tensors_of(model);
  for (const char* name :
       {"gpt.text_embedding.weight", "gpt.mel_embedding.weight",
        "gpt.text_pos_embedding.emb.weight", "gpt.final_norm.weight",
        "gpt.conditioning_encoder.init.weight", "gpt.conditioning_perceiver.latents",
        "hifigan_decoder.waveform_decoder.conv_pre.weight",
        "hifigan_decoder.waveform_decoder.ups.0.weight",
        "hifigan_decoder.waveform_decoder.resblocks.0.convs1.0.weight",
        "hifigan_decoder.speaker_encoder.conv1.weight",
        "hifigan_decoder.speaker_encoder.layer3.0.conv1.weight",
        "hifigan_decoder.speaker_encoder.attention.0.weight",
        "hifigan_decoder.speaker_encoder.fc.weight", "mel_stats"}) {
    const std::string sentence = sentence_of(without(all, name));
    EXPECT_TRUE(contains(sentence, std::string("`") + name + "`")) << name << ": " << sentence;
    EXPECT_TRUE(contains(sentence, "missing")) << name << ": " << sentence;
  }
}

TEST(Xtts, AFileOfSomethingElseSaysSo) {
  const std::string sentence = sentence_of({{"something", at::ones({2})}});
  EXPECT_TRUE(contains(sentence, "holds no XTTS model")) << sentence;
  const std::string almost = sentence_of({{"gpt.something", at::ones({2})}});
  EXPECT_TRUE(contains(almost, "holds no XTTS model: `gpt.text_embedding.weight`")) << almost;
}

TEST(Xtts, ShapesThatDoNotFitAreNamed) {
  Xtts model = narrow_xtts();
  const NamedTensors all = tensors_of(model);
  const std::string layer =
      sentence_of(with(all, "gpt.gpt.h.1.attn.c_attn.weight", at::ones({40, 119})));
  EXPECT_TRUE(contains(layer,
                       "`gpt.gpt.h.1.attn.c_attn.weight` has the shape [40, 119]; expected "
                       "[40, 120]"))
      << layer;
  const std::string stats = sentence_of(with(all, "mel_stats", at::ones({79})));
  EXPECT_TRUE(contains(stats, "`mel_stats` has 79 numbers; expected 80")) << stats;
}

TEST(Xtts, PartsOfDifferentModelsAreNamed) {
  Xtts model = narrow_xtts();
  Conditioning other = narrow_conditioning(64, 5 - 1);
  model.conditioning = other;
  const TestFolder place;
  XttsFolder folder = folder_of(place, tensors_of(model));
  folder.config.gpt.heads = 4;
  const Thrown thrown = thrown_by([&] { Xtts::load(folder); });
  EXPECT_TRUE(
      contains(thrown.sentence, "the conditioning encoder is 64 wide; expected the GPT's 40"))
      << thrown.sentence;
}

TEST(Xtts, TokenIdsOutsideTheVocabularyAreNamed) {
  const TestFolder place;
  Xtts model = narrow_xtts();
  XttsFolder folder = folder_of(place, tensors_of(model));
  folder.config.gpt.stop_audio_token = 1025;
  const Thrown thrown = thrown_by([&] { Xtts::load(folder); });
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_TRUE(contains(thrown.sentence, "gpt_stop_audio_token is 1025; expected one of its 34"))
      << thrown.sentence;
}

TEST(Xtts, HeadsThatDoNotDivideTheWidthAreNamed) {
  const TestFolder place;
  Xtts model = narrow_xtts();
  XttsFolder folder = folder_of(place, tensors_of(model));
  folder.config.gpt.heads = 3;
  const Thrown thrown = thrown_by([&] { Xtts::load(folder); });
  EXPECT_TRUE(contains(thrown.sentence, "a GPT of width 40 cannot have 3 heads"))
      << thrown.sentence;
  EXPECT_TRUE(contains(thrown.hint, "gpt_n_heads"));
}

TEST(Xtts, MelStatsMayLieBesideTheModel) {
  const TestFolder place;
  Xtts model = narrow_xtts();
  XttsFolder folder = folder_of(place, without(tensors_of(model), "mel_stats"));
  folder.mel_stats_file = place / "mel_stats.safetensors";
  put(folder.mel_stats_file, format_safetensors({{"x", model.mel_stats}}, {}));
  EXPECT_TRUE(same_bits(Xtts::load(folder).mel_stats, model.mel_stats));
  put(folder.mel_stats_file,
      format_safetensors({{"x", at::ones({80})}, {"y", at::ones({80})}}, {}));
  EXPECT_TRUE(contains(thrown_by([&] { Xtts::load(folder); }).sentence, "holds 2 tensors"));
}

TEST(Xtts, UnknownTensorsAreANoteAndKnownExtrasAreNone) {
  const TestFolder place;
  Xtts model = narrow_xtts();
  NamedTensors tensors = tensors_of(model);
  tensors.emplace_back("hifigan_decoder.speaker_encoder.bn1.num_batches_tracked", at::ones({}));
  const auto load = [&] {
    const Captured said = capture([&] { Xtts::load(folder_of(place, tensors)); });
    return said.out + said.err;
  };
  EXPECT_FALSE(contains(load(), "num_batches_tracked"));
  tensors.emplace_back("gpt.prompt_embedding.weight", at::ones({2, 2}));
  EXPECT_TRUE(
      contains(load(), "holds 1 tensors XTTS has no use for: `gpt.prompt_embedding.weight`"));
}

TEST(Xtts, MovesAPartToAnotherType) {
  Vocoder vocoder = narrow_vocoder();
  move_to(vocoder, "", at::kBFloat16);
  EXPECT_EQ(vocoder.stages[2].residual[0].first[1].weight.scalar_type(), at::kBFloat16);
}

}  // namespace tandem::tests
