#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/tensor_writing.h"
#include "models/musicgen/musicgen.h"
#include "models/musicgen/musicgen_folder.h"
#include "models/musicgen_expected.h"
#include "support/captured.h"
#include "support/tiny_musicgen.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

namespace fs = std::filesystem;
using Tensors = std::map<std::string, at::Tensor>;

constexpr const char* whole =
    "a whole folder holds config.json, tokenizer.json and the weights (model.safetensors or "
    "pytorch_model.bin, or shards with their index)";

Tensors stored() { return read_safetensors(tiny_musicgen_folder() + "/model.safetensors").tensors; }

NamedTensors listed(const Tensors& tensors) { return {tensors.begin(), tensors.end()}; }

// The tiny folder's small files beside weights of the test's own.
std::string folder_without_weights(const TestFolder& place) {
  for (const char* name : {"config.json", "generation_config.json", "tokenizer.json"})
    fs::copy_file(tiny_musicgen_folder() + "/" + name, place / name);
  return place.path().string();
}

std::string folder_with(const TestFolder& place, const Tensors& tensors) {
  place.write("model.safetensors", format_safetensors(listed(tensors), {}));
  return folder_without_weights(place);
}

Tensors all_of(Musicgen& model) {
  Tensors tensors;
  const auto keep = [&](const std::string& name, at::Tensor& tensor) { tensors[name] = tensor; };
  model.text.visit("text_encoder.", keep);
  model.decoder.visit("", keep);
  model.codec.visit("audio_encoder.", keep);
  return tensors;
}

Tensors load_all(const std::string& folder) {
  Musicgen model = Musicgen::load(folder, {.with_codec_encoder = true});
  return all_of(model);
}

void expect_same(const Tensors& ours, const Tensors& expected, double most = 0) {
  ASSERT_EQ(ours.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(ours.count(name)) << name;
    EXPECT_EQ(ours.at(name).scalar_type(), at::kFloat) << name;
    EXPECT_LE(farthest(ours.at(name), tensor), most) << name;
  }
}

// Weight norm under the names of older files, or folded into plain weights.
Tensors renamed(const Tensors& tensors, bool fold) {
  const std::string scale = ".parametrizations.weight.original0",
                    direction = ".parametrizations.weight.original1";
  Tensors out;
  for (const auto& [name, tensor] : tensors) {
    if (!name.ends_with(scale) && !name.ends_with(direction)) {
      out[name] = tensor;
      continue;
    }
    const std::string layer = name.substr(0, name.size() - scale.size());
    if (!fold) {
      out[layer + (name.ends_with(scale) ? ".weight_g" : ".weight_v")] = tensor;
    } else if (name.ends_with(direction)) {
      out[layer + ".weight"] = fold_weight_norm(tensors.at(layer + scale), tensor);
    }
  }
  return out;
}

Thrown refused(const std::string& folder) {
  return thrown_by([&] { Musicgen::load(folder, {.with_codec_encoder = true}); });
}

}  // namespace

TEST(MusicgenLoad, HalfWeightsBecomeFloatAsTheyAre) {
  const Tensors file = stored(), loaded = load_all(tiny_musicgen_folder());
  EXPECT_EQ(file.at("decoder.lm_heads.3.weight").scalar_type(), at::kHalf);
  size_t plain = 0;
  for (const auto& [name, tensor] : loaded) {
    EXPECT_EQ(tensor.scalar_type(), at::kFloat) << name;
    EXPECT_TRUE(tensor.is_cpu() && tensor.is_contiguous() && !tensor.requires_grad()) << name;
    if (!file.count(name)) continue;
    EXPECT_TRUE(at::equal(tensor, file.at(name).to(at::kFloat))) << name;
    ++plain;
  }
  EXPECT_GT(plain, 60u);
}

TEST(MusicgenLoad, TakesFloatAndBfloat16Files) {
  const Tensors expected = load_all(tiny_musicgen_folder());
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    Tensors tensors = stored();
    for (auto& [name, tensor] : tensors) tensor = tensor.to(type);
    const TestFolder place;
    // bfloat16 keeps 8 bits.
    expect_same(load_all(folder_with(place, tensors)), expected, type == at::kFloat ? 0 : 0.05);
  }
}

TEST(MusicgenLoad, TakesEitherNamingOfWeightNormOrNone) {
  const Tensors expected = load_all(tiny_musicgen_folder());
  for (const bool fold : {false, true}) {
    const TestFolder place;
    expect_same(load_all(folder_with(place, renamed(stored(), fold))), expected);
  }
}

TEST(MusicgenLoad, TakesTheTextEmbeddingUnderEitherName) {
  const Tensors expected = load_all(tiny_musicgen_folder());
  Tensors tensors = stored();
  const std::string first = "text_encoder.shared.weight",
                    second = "text_encoder.encoder.embed_tokens.weight";
  ASSERT_TRUE(tensors.count(first));
  tensors[second] = tensors.at(first);
  const TestFolder both;
  const std::string folder = folder_with(both, tensors);
  const Captured said = capture([&] { expect_same(load_all(folder), expected); });
  EXPECT_EQ(said.out + said.err, "") << "the second name is nothing to speak of";
  tensors.erase(first);
  const TestFolder other;
  expect_same(load_all(folder_with(other, tensors)), expected);
}

TEST(MusicgenLoad, AStoredTableOfPositionsIsIgnored) {
  Tensors tensors = stored();
  tensors["decoder.model.decoder.embed_positions.weights"] = at::full({2048, 32}, 7.0f);
  const TestFolder place;
  const std::string folder = folder_with(place, tensors);
  const Captured said =
      capture([&] { expect_same(load_all(folder), load_all(tiny_musicgen_folder())); });
  EXPECT_EQ(said.out + said.err, "");
}

TEST(MusicgenLoad, PositionsAreThoseOfTransformersAndGoOn) {
  for (const std::string& name : musicgen_fixtures()) {
    auto expected = musicgen_expected(name);
    const at::Tensor truth = expected["positions"];  // of 0, 1, 2, 59
    const at::Tensor table = MusicDecoder::sinusoids(3000, truth.size(1));
    ASSERT_EQ(table.sizes(), (at::IntArrayRef{3000, truth.size(1)}));
    EXPECT_LE(farthest(table.index({at::tensor({0, 1, 2, 59}, at::kLong)}), truth), 1e-6) << name;
    if (!expected.count("positions_late")) continue;
    EXPECT_LE(
        farthest(table.index({at::tensor({1500, 2047}, at::kLong)}), expected["positions_late"]),
        1e-6);
    EXPECT_TRUE(table.isfinite().all().item<bool>());
  }
}

TEST(MusicgenLoad, TakesShards) {
  Tensors parts[3];
  nlohmann::json map;
  size_t place_in = 0;
  const auto name_of = [](size_t part) { return fmt::format("model-{}-of-3.safetensors", part); };
  for (const auto& [name, tensor] : stored()) {
    parts[place_in % 3][name] = tensor;
    map[name] = name_of(place_in++ % 3);
  }
  const TestFolder place;
  for (size_t i = 0; i < 3; ++i) place.write(name_of(i), format_safetensors(listed(parts[i]), {}));
  place.write("model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
  const std::string folder = folder_without_weights(place);
  expect_same(load_all(folder), load_all(tiny_musicgen_folder()));
  EXPECT_EQ(MusicgenFolder::open(folder).open_weights()->format(), "safetensors, 3 shards");

  fs::remove(place / name_of(1));
  const Thrown gone = refused(folder);
  EXPECT_EQ(gone.kind, "io");
  EXPECT_EQ(gone.sentence, fmt::format("`{}/model.safetensors.index.json` names the shard "
                                       "`model-1-of-3.safetensors`, which is not there",
                                       folder));
}

TEST(MusicgenLoad, RefusesAnIndexThatIsNone) {
  const TestFolder place;
  const std::string folder = folder_without_weights(place);
  const std::string index = folder + "/model.safetensors.index.json";
  for (const char* text : {"[]", "{", R"({"weight_map": {}})", R"({"weight_map": ["a"]})"}) {
    place.write("model.safetensors.index.json", text);
    const Thrown thrown = refused(folder);
    EXPECT_EQ(thrown.kind, "corrupt") << text;
    EXPECT_EQ(thrown.sentence, "`" + index +
                                   "` is no index of shards: expected an object `weight_map` of "
                                   "tensors and their files");
  }
  for (const char* file : {"\"../elsewhere\"", "\"/etc/passwd\"", "\"..\"", "\"\"", "3"}) {
    place.write("model.safetensors.index.json",
                fmt::format(R"({{"weight_map": {{"a": {}}}}})", file));
    const Thrown thrown = refused(folder);
    EXPECT_EQ(thrown.kind, "corrupt") << file;
    EXPECT_EQ(thrown.sentence,
              "`" + index + "` is no index of shards: expected names of files in the same folder");
  }
}

TEST(MusicgenLoad, TakesPytorchModelBin) {
  std::vector<PthItem> items;
  for (const auto& [name, tensor] : stored())
    items.push_back({.path = {name}, .value = TensorToWrite::of(tensor)});
  const TestFolder place;
  write_pth(place / "pytorch_model.bin", items);
  expect_same(load_all(folder_without_weights(place)), load_all(tiny_musicgen_folder()));
}

TEST(MusicgenLoad, WithoutItsEncoderTheCodecIsHalf) {
  Musicgen model = Musicgen::load(tiny_musicgen_folder());
  EXPECT_FALSE(model.codec.encoder.first.weight.defined());
  for (const auto& [name, tensor] : all_of(model))
    EXPECT_FALSE(name.starts_with("audio_encoder.encoder.")) << name;
}

TEST(MusicgenLoad, ProjectsTextOnlyBetweenDifferentWidths) {
  EXPECT_TRUE(Musicgen::load(musicgen_fixture("tiny")).decoder.text_projection.weight.defined());
  Musicgen stereo = Musicgen::load(musicgen_fixture("stereo"));
  EXPECT_EQ(stereo.config.text.width, stereo.config.decoder.width);
  EXPECT_FALSE(stereo.decoder.text_projection.weight.defined());
  EXPECT_EQ(stereo.decoder.heads.size(), 8u);
}

TEST(MusicgenLoad, ListsWhatIsMissing) {
  Tensors tensors = stored();
  tensors.erase("decoder.lm_heads.2.weight");
  tensors.erase("audio_encoder.quantizer.layers.1.codebook.embed");
  const TestFolder place;
  const std::string folder = folder_with(place, tensors);
  const Thrown thrown = refused(folder);
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_EQ(thrown.sentence,
            "`" + folder +
                "/model.safetensors` holds no MusicGen model: `decoder.lm_heads.2.weight`, "
                "`audio_encoder.quantizer.layers.1.codebook.embed` missing");
}

TEST(MusicgenLoad, SpeaksOfWhatItDoesNotKnow) {
  Tensors tensors = stored();
  tensors["decoder.model.extra.weight"] = at::zeros({3});
  const TestFolder place;
  const std::string folder = folder_with(place, tensors);
  const Captured said = capture([&] { Musicgen::load(folder); });
  EXPECT_TRUE(contains(said.out + said.err,
                       "model.safetensors` holds 1 tensor MusicGen has no use "
                       "for: `decoder.model.extra.weight`"))
      << said.out << said.err;
  const Captured plain = capture([&] { Musicgen::load(tiny_musicgen_folder()); });
  EXPECT_EQ(plain.out + plain.err, "");
}

TEST(MusicgenLoad, RefusesShapesThatConfigDoesNotAskFor) {
  Tensors tensors = stored();
  tensors["decoder.lm_heads.0.weight"] = at::zeros({31, 32});
  const TestFolder place;
  const std::string folder = folder_with(place, tensors);
  const Thrown thrown = refused(folder);
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_EQ(thrown.sentence, "`" + folder +
                                 "/model.safetensors`: `decoder.lm_heads.0.weight` has the shape "
                                 "[31, 32]; config.json asks for [32, 32]");
}

TEST(MusicgenLoad, RefusesATokenizerOfMoreTokensThanTheTextEncoder) {
  const TestFolder place;
  const std::string folder = folder_with(place, stored());
  nlohmann::json tokenizer = nlohmann::json::parse(contents(place / "tokenizer.json"));
  for (int i = 0; i < 20; ++i)
    tokenizer["model"]["vocab"].push_back({fmt::format("piece{}", i), -9.0});
  place.write("tokenizer.json", tokenizer.dump());
  const Thrown thrown = refused(folder);
  EXPECT_EQ(thrown.kind, "corrupt");
  EXPECT_TRUE(contains(thrown.sentence, "tokens; the text encoder has 112 embeddings"))
      << thrown.sentence;
}

TEST(MusicgenLoad, SaysWhatAWholeFolderHolds) {
  const TestFolder place;
  const std::string folder = folder_with(place, stored());
  const auto sentence = [&](const std::string& path) {
    const Thrown thrown = refused(path);
    EXPECT_EQ(thrown.kind, "io");
    return thrown.sentence;
  };
  EXPECT_EQ(sentence(folder + "/nothing"), "there is no folder `" + folder + "/nothing`; " + whole);
  for (const auto& [file, what] :
       {std::pair{"tokenizer.json", "tokenizer.json"}, std::pair{"model.safetensors", "weights"},
        std::pair{"config.json", "config.json"}}) {
    fs::remove(place / file);
    EXPECT_EQ(sentence(folder), "`" + folder + "` has no " + what + "; " + whole);
  }
}

TEST(MusicgenLoad, TellsAMusicgenFolderWithoutLoadingIt) {
  EXPECT_TRUE(MusicgenFolder::looks_like(tiny_musicgen_folder()));
  const TestFolder place;
  EXPECT_FALSE(MusicgenFolder::looks_like(place.path()));
  place.write("config.json", R"({"model_type": "musicgen_melody"})");
  EXPECT_TRUE(MusicgenFolder::looks_like(place.path()));
  for (const char* other : {R"({"model": "xtts"})", R"({"model_type": 3})", "[", "[]"}) {
    place.write("config.json", other);
    EXPECT_FALSE(MusicgenFolder::looks_like(place.path())) << other;
  }
}

TEST(MusicgenLoad, AMadeModelIsTheSameForTheSameSeed) {
  Musicgen one = Musicgen::make("tiny", 1), again = Musicgen::make("tiny", 1),
           other = Musicgen::make("stereo-tiny", 2);
  const Tensors first = all_of(one), second = all_of(again);
  for (const auto& [name, tensor] : first) {
    EXPECT_TRUE(at::equal(tensor, second.at(name))) << name;
    EXPECT_FALSE(tensor.requires_grad()) << name;
  }
  EXPECT_FALSE(at::equal(one.decoder.blocks[0].expand, other.decoder.blocks[0].expand));
  EXPECT_EQ(other.decoder.heads.size(), 8u);
}

TEST(MusicgenLoad, LargeRandomMatricesHaveDifferentRows) {
  const MusicDecoder decoder = MusicDecoder::make(
      {.width = 1024, .layers = 1, .heads = 16, .inner = 4096, .codebooks = 1}, 1024, 1);
  const at::Tensor& weight = decoder.blocks[0].expand;  // four times the block that is repeated
  EXPECT_NEAR(weight.std().item<double>(), 0.02, 2e-4);
  // Rows 1024 apart would be equal if the block held whole rows.
  const at::Tensor rows = weight / weight.norm(2, {1}, true);
  const at::Tensor alike = (rows.narrow(0, 0, 3072) * rows.narrow(0, 1024, 3072)).sum(1);
  EXPECT_LT(alike.abs().max().item<double>(), 0.3);
  EXPECT_FALSE(at::equal(weight.view({-1}).narrow(0, 0, 1024),
                         decoder.blocks[0].contract.view({-1}).narrow(0, 0, 1024)));
}

}  // namespace tandem::tests
