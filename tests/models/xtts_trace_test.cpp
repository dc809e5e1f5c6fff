#include "models/xtts/xtts_trace.h"

#include <gtest/gtest.h>

#include "models/xtts/dvae.h"
#include "models/xtts_narrow.h"
#include "nn/sample.h"
#include "nn/tensors.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

// Letters, a full stop, and what XTTS puts around them.
std::string vocabulary() {
  std::string tokens = R"("[STOP]":0,"[UNK]":1,"[SPACE]":2)";
  for (int i = 0; i < 26; ++i)
    tokens += ",\"" + std::string(1, static_cast<char>('a' + i)) + "\":" + std::to_string(3 + i);
  tokens += R"(,"[en]":29,".":30,"[START]":31,"i̇":32)";
  const auto added = [](int id, const std::string& token) {
    return R"({"id":)" + std::to_string(id) + R"(,"content":")" + token +
           R"(","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,)"
           R"("special":true})";
  };
  return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)" +
         added(0, "[STOP]") + "," + added(1, "[UNK]") + "," + added(2, "[SPACE]") + "," +
         added(29, "[en]") + "," + added(31, "[START]") +
         R"(],"normalizer":null,"pre_tokenizer":{"type":"Whitespace"},"post_processor":null,)"
         R"("decoder":null,"model":{"type":"BPE","dropout":null,"unk_token":"[UNK]",)"
         R"("continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,)"
         R"("vocab":{)" +
         tokens + R"(},"merges":[]}})";
}

class XttsTrace : public testing::Test {
 protected:
  XttsTrace() {
    Xtts model = narrow_xtts();
    model.gpt.audio_head.bias[33] = -30;  // speaks as long as it may
    NamedTensors tensors;
    model.visit(
        [&](const std::string& name, at::Tensor& tensor) { tensors.emplace_back(name, tensor); });
    put(place_ / "model.safetensors", format_safetensors(tensors, {}));
    put(place_ / "config.json", format_xtts_config(narrow_config()));
    put(place_ / "vocab.json", vocabulary());
    NamedWeights dvae;
    Dvae listed;
    listed.encoder.size = {.widths = {12, 24}, .vector = 12, .codes = 32};
    listed.list("", into(dvae));
    put(place_ / "dvae.safetensors",
        format_safetensors(NamedTensors(dvae.begin(), dvae.end()), {}));
    write_clip(voice(), "clip.a", 22050, 2, 22050);
  }

  std::string voice() const { return (place_ / "voice.wav").string(); }
  TraceRequest request() const {
    return {.text = " Hello There. ", .voice = voice(), .greedy = true, .max_codes = 9};
  }
  std::map<std::string, at::Tensor> trace(const TraceRequest& request) {
    const Trace made = trace_xtts(XttsFolder::open(place_.path()), request);
    metadata_ = made.metadata;
    return {made.tensors.begin(), made.tensors.end()};
  }

  TestFolder place_;
  Metadata metadata_;
};

}  // namespace

TEST_F(XttsTrace, HoldsEveryIntermediateUnderItsName) {
  const auto found = trace(request());
  const std::map<std::string, Shape> expected{{"text_ids", {13}},
                                              {"audio_22k", {1, 22050}},
                                              {"mel_dvae", {1, 80, 87}},
                                              {"mel_cond", {1, 80, 87}},
                                              {"audio_16k", {1, 16000}},
                                              {"mel_speaker", {1, 64, 101}},
                                              {"gpt_cond_latent", {1, 32, 40}},
                                              {"speaker_embedding", {1, 12, 1}},
                                              {"dvae_codes", {1, 22}},
                                              {"codes", {9}},
                                              {"logits", {9, 34}},
                                              {"latents", {9, 40}},
                                              {"wav", {39 * 256}}};
  EXPECT_EQ(found.size(), expected.size());
  for (const auto& [name, shape] : expected) {
    ASSERT_TRUE(found.count(name)) << name;
    EXPECT_EQ(found.at(name).sizes(), at::IntArrayRef(shape)) << name;
  }
  EXPECT_EQ(metadata_.at("normalised_text"), "hello there.");
  EXPECT_EQ(metadata_.at("greedy"), "true");
  EXPECT_EQ(numbers(found.at("text_ids")),
            (std::vector<int64_t>{29, 10, 7, 14, 14, 17, 2, 22, 10, 7, 20, 7, 30}));
}

TEST_F(XttsTrace, ItsStagesFollowFromEachOther) {
  const at::NoGradGuard no_grad;
  const auto found = trace(request());
  const Xtts model = Xtts::load(XttsFolder::open(place_.path()));
  const at::Tensor latents = model.gpt.latents(
      numbers(found.at("text_ids")), numbers(found.at("codes")), found.at("gpt_cond_latent"));
  EXPECT_LT(largest_difference(latents[0], found.at("latents")), 2e-5);
  EXPECT_LT(largest_difference(model.gpt.audio_head(latents)[0], found.at("logits")), 5e-5);
  const at::Tensor wav = model.vocoder(latents, found.at("speaker_embedding").squeeze(2));
  EXPECT_GT(decibels(found.at("wav"), wav[0]), 90);
  std::vector<bool> seen(34);
  seen[1] = seen[32] = true;
  for (int64_t step = 0; step < 9; ++step) {
    const at::Tensor row = found.at("logits")[step].contiguous();
    const int64_t code = sample_code({row.const_data_ptr<float>(), 34}, seen,
                                     {.repetition_penalty = 5, .greedy = true}, 0);
    EXPECT_EQ(found.at("codes")[step].item<int64_t>(), code);
    seen[static_cast<size_t>(code)] = true;
  }
}

TEST_F(XttsTrace, DrawsByItsSeed) {
  TraceRequest drawn = request();
  drawn.greedy = false;
  drawn.sampling = {.temperature = 3};
  const auto codes = [&](uint64_t seed) {
    drawn.seed = seed;
    return numbers(trace(drawn).at("codes"));
  };
  const auto first = codes(1);
  EXPECT_EQ(codes(1), first);
  EXPECT_NE(codes(2), first);
  EXPECT_EQ(metadata_.at("seed"), "2");
  drawn.sampling.temperature = 0;
  EXPECT_EQ(thrown_by([&] { trace(drawn); }).sentence,
            "temperature is 0; expected a number above 0");
}

TEST_F(XttsTrace, SpeaksAsLongAsTheModelAllows) {
  TraceRequest long_request = request();
  long_request.max_codes = 0;
  EXPECT_EQ(trace(long_request).at("codes").size(0), 37);
}

TEST_F(XttsTrace, TeacherForcingAddsItsLosses) {
  TraceRequest forced = request();
  forced.teacher_forced = true;
  const auto found = trace(forced);
  EXPECT_EQ(found.at("text_logits").sizes(), (at::IntArrayRef{1, 37, 15}));
  EXPECT_EQ(found.at("mel_logits").sizes(), (at::IntArrayRef{1, 34, 22 + 3 + 2}));
  EXPECT_EQ(found.at("loss_text").dim(), 0);
  // The loss is that of the saved logits and codes: 22 codes, then 4 stop tokens.
  const at::Tensor targets =
      at::cat({found.at("dvae_codes")[0], at::full({4}, 33, at::kLong)}).unsqueeze(0);
  const at::Tensor loss = at::cross_entropy_loss(found.at("mel_logits").narrow(2, 0, 26), targets);
  EXPECT_NEAR(number(found.at("loss_mel")), number(loss), 1e-5);
}

TEST_F(XttsTrace, WithoutADvaeThereAreNoCodesToForce) {
  std::filesystem::remove(place_ / "dvae.safetensors");
  EXPECT_FALSE(trace(request()).count("dvae_codes"));
  TraceRequest forced = request();
  forced.teacher_forced = true;
  const Thrown thrown = thrown_by([&] { trace(forced); });
  EXPECT_EQ(thrown.kind, "io");
  EXPECT_TRUE(contains(thrown.sentence, "holds no DVAE")) << thrown.sentence;
}

// Coqui lowers before it cleans: İ becomes i and a dot above. The best cleaning keeps Turkish.
TEST_F(XttsTrace, LowersAsTheReferenceDoes) {
  TraceRequest turkish = request();
  turkish.text = "İ";
  turkish.language = "tr";
  trace(turkish);
  EXPECT_EQ(metadata_.at("normalised_text"), "i\xCC\x87");
  turkish.style = CleanStyle::best;
  trace(turkish);
  EXPECT_EQ(metadata_.at("normalised_text"), "i");
}

TEST_F(XttsTrace, RefusesNothingToSayAndUnknownLanguages) {
  TraceRequest wrong = request();
  wrong.text = "  ";
  EXPECT_EQ(thrown_by([&] { trace(wrong); }).sentence, "the text is empty");
  wrong = request();
  wrong.language = "tlh";
  EXPECT_EQ(thrown_by([&] { trace(wrong); }).kind, "data");
  wrong = request();
  wrong.text = std::string(100, 'a');
  EXPECT_EQ(thrown_by([&] { trace(wrong); }).sentence,
            "the text has 101 tokens; this model takes 20 at most");
}

}  // namespace tandem::tests
