#include "models/xtts/xtts_export.h"

#include <gtest/gtest.h>

#include "audio/signal/mel.h"
#include "models/xtts_folder_files.h"
#include "util/atomic_file.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

const std::string decoder = "hifigan_decoder.waveform_decoder.";
const std::string tables = "hifigan_decoder.speaker_encoder.torch_spec.";

// A folder of ours with a model, a DVAE and one voice.
void write_ours(const TestFolder& folder) {
  write_settings(folder);
  write_tensors(folder / "model.safetensors", some_of_xtts());
  write_tensors(folder / "dvae.safetensors", {{"encoder.0.0.weight", waves({4, 8, 3})},
                                              {"codebook.embed", waves({4, 6})},
                                              {"mel_stats", some_of_xtts().at("mel_stats")}});
  write_tensors(folder / "speakers.safetensors", {{"Ana/speaker_embedding", waves({1, 5, 1})},
                                                  {"Ana/gpt_cond_latent", waves({1, 2, 4})}});
}

std::string made(const TestFolder& folder, const std::string& name) {
  make_folder(folder / name);
  return (folder / name).string();
}

}  // namespace

TEST(XttsExport, BothWaysGiveTheSameTensors) {
  const TestFolder from, work;
  write_ours(from);
  const std::string coqui = made(work, "coqui"), ours = made(work, "ours");
  export_xtts(XttsFolder::open(from.path()), coqui, {.target = XttsTarget::coqui});
  export_xtts(XttsFolder::open(coqui), ours, {.target = XttsTarget::tandem});
  for (const char* name : {"model.safetensors", "dvae.safetensors", "speakers.safetensors"}) {
    const auto back = read_safetensors(std::filesystem::path(ours) / name).tensors;
    for (const auto& [tensor, wanted] : read_safetensors(from / name).tensors) {
      ASSERT_TRUE(back.count(tensor)) << tensor;
      EXPECT_TRUE(at::allclose(back.at(tensor), wanted, 1e-6, 1e-7)) << tensor;
    }
  }
  for (const char* name : {"config.json", "vocab.json"})
    EXPECT_EQ(contents(std::filesystem::path(ours) / name), contents(from / name));
}

TEST(XttsExport, CoquisFormHasWeightNormCountersAndTables) {
  const TestFolder from, work;
  write_ours(from);
  const std::string out = made(work, "coqui");
  const XttsExported exported =
      export_xtts(XttsFolder::open(from.path()), out, {.target = XttsTarget::coqui});
  EXPECT_EQ(exported.files.size(), 6u);
  const auto file = open_tensor_file(out + "/model.pth");
  const at::Tensor weight = some_of_xtts().at(decoder + "ups.0.weight");
  const std::string normed = "model/" + decoder + "ups.0.parametrizations.weight.original";
  EXPECT_EQ(file->read(normed + "0").sizes(), (std::vector<int64_t>{3, 1, 1}));
  EXPECT_TRUE(
      at::allclose(file->read(normed + "0").flatten(), weight.view({3, -1}).pow(2).sum(1).sqrt()));
  EXPECT_TRUE(at::equal(file->read(normed + "1"), weight));
  EXPECT_FALSE(file->has("model/" + decoder + "ups.0.weight"));
  EXPECT_TRUE(file->has("model/" + decoder + "conv_post.weight")) << "has no weight norm";
  const at::Tensor count =
      file->read("model/hifigan_decoder.speaker_encoder.bn1.num_batches_tracked");
  EXPECT_EQ(count.scalar_type(), at::kLong);
  EXPECT_EQ(count.dim(), 0);
  EXPECT_EQ(file->read("model/" + tables + "1.mel_scale.fb").sizes(),
            (std::vector<int64_t>{257, 64}));
  EXPECT_EQ(file->read("model/" + tables + "1.spectrogram.window").numel(), 400);
  EXPECT_EQ(file->read("model/" + tables + "0.filter").sizes(), (std::vector<int64_t>{1, 1, 2}));
  const auto dvae = open_tensor_file(out + "/dvae.pth");
  EXPECT_TRUE(dvae->has("codebook.embed"));
  EXPECT_FALSE(dvae->has("mel_stats"));
  const auto speakers = open_tensor_file(out + "/speakers_xtts.pth");
  EXPECT_EQ(speakers->entries()[0].name, "Ana/gpt_cond_latent");
  EXPECT_EQ(speakers->entries()[1].name, "Ana/speaker_embedding");
  EXPECT_EQ(open_tensor_file(out + "/mel_stats.pth")->read("tensor").numel(), 8);
}

TEST(XttsExport, ARowOfZerosStaysOne) {
  const TestFolder from, work;
  write_settings(from);
  auto tensors = some_of_xtts();
  tensors.at(decoder + "ups.0.weight")[1].zero_();
  write_tensors(from / "model.safetensors", tensors);
  const std::string coqui = made(work, "coqui"), ours = made(work, "ours");
  export_xtts(XttsFolder::open(from.path()), coqui, {.target = XttsTarget::coqui});
  export_xtts(XttsFolder::open(coqui), ours, {.target = XttsTarget::tandem});
  const auto back = read_safetensors(ours + "/model.safetensors").tensors;
  EXPECT_TRUE(
      at::allclose(back.at(decoder + "ups.0.weight"), tensors.at(decoder + "ups.0.weight")));
}

TEST(XttsExport, ATrainersCheckpointGivesTheModelAndItsDvae) {
  const TestFolder from, work;
  write_settings(from);
  std::vector<PthItem> items;
  for (const auto& [name, tensor] : some_of_xtts())
    items.push_back({.path = {"model", "xtts." + name}, .value = TensorToWrite::of(tensor)});
  for (const char* name : {"xtts.gpt.gpt_inference.x", "xtts.gpt.gpt.wte.weight",
                           "dvae.codebook.embed", "torch_mel_spectrogram_dvae.window"})
    items.push_back({.path = {"model", name}, .value = TensorToWrite::of(waves({3, 2}))});
  items.push_back({.path = {"step"}, .value = int64_t{7}});
  write_pth(from / "best_model.pth", items);
  const std::string out = made(work, "ours");
  const XttsExported exported = export_xtts(XttsFolder::open(from.path()), out);
  EXPECT_EQ(exported.left_out,
            (std::vector<std::string>{"gpt.gpt_inference.x", "gpt.gpt.wte.weight"}));
  EXPECT_EQ(read_safetensors(out + "/model.safetensors").tensors.size(), some_of_xtts().size());
  const auto dvae = read_safetensors(out + "/dvae.safetensors").tensors;
  EXPECT_TRUE(dvae.count("codebook.embed"));
  EXPECT_TRUE(dvae.count("mel_stats")) << "so that the file alone turns sound into codes";
}

TEST(XttsExport, TakesMelStatsFromTheirOwnFile) {
  const TestFolder from, work;
  write_settings(from);
  auto tensors = some_of_xtts();
  tensors.erase("mel_stats");
  write_state(from / "model.pth", "", tensors);
  write_pth(from / "mel_stats.pth", {{.path = {}, .value = TensorToWrite::of(waves({8}))}});
  const std::string out = made(work, "ours");
  export_xtts(XttsFolder::open(from.path()), out);
  EXPECT_TRUE(
      at::equal(read_safetensors(out + "/model.safetensors").tensors.at("mel_stats"), waves({8})));
}

TEST(XttsExport, PrecisionIsOfMatricesAndKernelsOnly) {
  const TestFolder from, work;
  write_ours(from);
  const std::string out = made(work, "half");
  export_xtts(XttsFolder::open(from.path()), out,
              {.target = XttsTarget::coqui, .precision = at::kHalf});
  const auto file = open_tensor_file(out + "/model.pth");
  const auto type = [&](const std::string& name) {
    return file->read("model/" + name).scalar_type();
  };
  EXPECT_EQ(type("gpt.mel_embedding.weight"), at::kHalf);
  EXPECT_EQ(type(decoder + "ups.0.parametrizations.weight.original1"), at::kHalf);
  EXPECT_EQ(type(decoder + "ups.0.parametrizations.weight.original0"), at::kFloat);
  EXPECT_EQ(type(decoder + "ups.0.bias"), at::kFloat);
  EXPECT_EQ(type("hifigan_decoder.speaker_encoder.bn1.running_var"), at::kFloat);
  EXPECT_EQ(type(tables + "1.mel_scale.fb"), at::kFloat);
  EXPECT_EQ(type("mel_stats"), at::kFloat);
}

TEST(XttsExport, RefusesNumbersThatDoNotFitFp16) {
  const TestFolder from, work;
  write_settings(from);
  auto tensors = some_of_xtts();
  tensors.at("gpt.mel_embedding.weight")[0][0] = 1e6;
  write_tensors(from / "model.safetensors", tensors);
  const Thrown thrown = thrown_by([&] {
    export_xtts(XttsFolder::open(from.path()), made(work, "half"), {.precision = at::kHalf});
  });
  EXPECT_EQ(thrown.kind, "data");
  EXPECT_EQ(thrown.sentence,
            "`gpt.mel_embedding.weight` holds numbers beyond what fp16 can, 65504");
  EXPECT_EQ(thrown.hint, "choose --precision bf16");
}

TEST(XttsExport, RefusesHalfAWeightNorm) {
  for (const char* half : {"weight_v", "weight_g"}) {
    const TestFolder from, work;
    write_settings(from);
    auto tensors = some_of_xtts();
    tensors.erase(decoder + "ups.0.weight");
    tensors.emplace(decoder + "ups.0." + half, waves({3, 2}));
    write_tensors(from / "model.safetensors", tensors);
    const Thrown thrown =
        thrown_by([&] { export_xtts(XttsFolder::open(from.path()), made(work, "out")); });
    EXPECT_EQ(thrown.kind, "corrupt");
    EXPECT_TRUE(contains(thrown.sentence, "without the other half of its weight norm"))
        << thrown.sentence;
  }
}

TEST(XttsExport, ReportsItsProgress) {
  const TestFolder from, work;
  write_ours(from);
  uint64_t last = 0, all = 0;
  export_xtts(XttsFolder::open(from.path()), made(work, "out"),
              {.on_progress = [&](uint64_t done, uint64_t total) {
                EXPECT_GE(done, last);
                last = done;
                all = total;
              }});
  EXPECT_EQ(last, all);
  EXPECT_GT(all, 0u);
}

}  // namespace tandem::tests
