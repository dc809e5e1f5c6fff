#include "generate/clip_fad.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "audio/file/write_audio.h"
#include "generate/evaluation_files.h"
#include "generate/frechet.h"
#include "support/captured.h"
#include "support/temporary_folder.h"
#include "util/atomic_file.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

const fs::path tiny_model = TANDEM_SOURCE_DIR "/tests/models/fixtures/musicgen/tiny";

const EncodecSize fad_codec_size{.rate = 4000,
                                 .hidden = 8,
                                 .filters = 4,
                                 .lstm_layers = 1,
                                 .ratios = {4, 2},
                                 .codebook_size = 16,
                                 .codebook_width = 8,
                                 .codebooks = 2,
                                 .causal = false,
                                 .shortcut_conv = false};

class Sounds {
 public:
  fs::path add(const std::string& name, double hertz, double loudness, int rate = 4000,
               double seconds = 0.3) {
    std::vector<float> samples(static_cast<size_t>(seconds * rate));
    for (size_t i = 0; i < samples.size(); ++i) {
      samples[i] =
          static_cast<float>(loudness * std::sin(2 * M_PI * hertz * static_cast<double>(i) / rate));
    }
    write_wav(folder_ / name, samples, 1, rate, SampleFormat::float32);
    return folder_ / name;
  }
  std::vector<fs::path> several(const std::string& name, int count, double hertz, double loudness) {
    std::vector<fs::path> all;
    for (int i = 0; i < count; ++i)
      all.push_back(add(name + std::to_string(i) + ".wav", hertz + 7 * i, loudness));
    return all;
  }
  const TestFolder& folder() const { return folder_; }

 private:
  TestFolder folder_;
};

}  // namespace

TEST(ClipFad, OfAFolderToItselfIsNothingAndOfOtherSoundsMore) {
  Sounds sounds;
  const Encodec codec = Encodec::make(fad_codec_size, 1);
  const auto reference = sounds.several("r", 4, 200, 0.5), far = sounds.several("f", 4, 900, 0.05),
             near = sounds.several("n", 4, 205, 0.5);
  const double same = measure_fad(codec, reference, reference).score;
  const FadReport close = measure_fad(codec, near, reference);
  const FadReport apart = measure_fad(codec, far, reference);
  EXPECT_NEAR(same, 0, 1e-9);
  EXPECT_GT(close.score, 1e-6);
  EXPECT_GT(apart.score, 3 * close.score);
  EXPECT_EQ(apart.clips, 4);
  EXPECT_EQ(apart.references, 4);
  EXPECT_EQ(apart.clip_frames, 4 * 150);  // 1200 samples in hops of 8
}

TEST(ClipFad, IsTheDistanceOfAllFrames) {
  Sounds sounds;
  const Encodec codec = Encodec::make(fad_codec_size, 1);
  const auto reference = sounds.several("r", 3, 200, 0.5), clips = sounds.several("c", 3, 300, 0.4);
  const auto cloud = [&](double hertz, double loudness) {
    FeatureCloud all;
    for (int i = 0; i < 3; ++i) {
      const at::Tensor time = at::arange(1200, at::kDouble) / 4000;
      const at::Tensor wave = loudness * at::sin(2 * M_PI * (hertz + 7 * i) * time);
      all.add(codec.features(wave.to(at::kFloat).view({1, 1, -1}))[0]);
    }
    return all;
  };
  const FeatureCloud far = cloud(300, 0.4), base = cloud(200, 0.5);
  const FadReport report = measure_fad(codec, clips, reference);
  EXPECT_NEAR(report.score, frechet_distance(far, base), 1e-6);
  const double spread = base.covariance().trace().item<double>();
  for (const double score : report.clip_scores) EXPECT_GT(score, spread);
}

TEST(ClipFad, SubsetsGiveMeanAndDeviation) {
  Sounds sounds;
  const Encodec codec = Encodec::make(fad_codec_size, 1);
  const auto reference = sounds.several("r", 2, 200, 0.5), clips = sounds.several("c", 7, 300, 0.4);
  const FadReport report = measure_fad(codec, clips, reference, {.subsets = 5});
  ASSERT_EQ(report.subset_scores.size(), 3u);  // two clips each at least
  double sum = 0, squares = 0;
  for (const double score : report.subset_scores) sum += score;
  for (const double score : report.subset_scores) squares += std::pow(score - sum / 3, 2);
  EXPECT_NEAR(report.mean, sum / 3, 1e-12);
  EXPECT_NEAR(report.deviation, std::sqrt(squares / 2), 1e-12);
  EXPECT_GT(report.deviation, 0);
  const auto again = measure_fad(codec, clips, reference).subset_scores;
  EXPECT_EQ(again, report.subset_scores);
  const FadReport few = measure_fad(codec, {clips[0], clips[1], clips[2]}, reference);
  EXPECT_TRUE(few.subset_scores.empty());
  EXPECT_EQ(few.mean, few.score);
}

TEST(ClipFad, ResamplesToTheCodecsRate) {
  Sounds sounds;
  const Encodec codec = Encodec::make(fad_codec_size, 1);
  const fs::path low = sounds.add("low.wav", 200, 0.5),
                 high = sounds.add("high.wav", 200, 0.5, 16000);
  const FadReport report = measure_fad(codec, {high}, {low});
  EXPECT_EQ(report.clip_frames, report.reference_frames);
  EXPECT_LT(report.score, 0.05 * report.clip_scores[0]);
}

TEST(ClipFad, LongSoundsAreTakenInPieces) {
  Sounds sounds;
  const Encodec codec = Encodec::make(fad_codec_size, 1);
  const fs::path long_one = sounds.add("long.wav", 200, 0.5, 4000, 61.0005);
  const FadReport report = measure_fad(codec, {long_one}, {long_one});
  // 244,002 samples: two pieces of 30 s, and 4,002 samples that make 501 frames.
  EXPECT_EQ(report.clip_frames, 30501);
}

TEST(ClipFad, SkipsWhatCannotBeReadAndSaysSo) {
  Sounds sounds;
  const Encodec codec = Encodec::make(fad_codec_size, 1);
  const fs::path fine = sounds.add("a.wav", 200, 0.5), broken = sounds.folder().write("b.wav", "x");
  const FadReport report = measure_fad(codec, {broken, fine}, {fine});
  EXPECT_EQ(report.clips, 1);
  ASSERT_EQ(report.unread.size(), 1u);
  EXPECT_NE(report.unread[0].find("b.wav"), std::string::npos);
  EXPECT_TRUE(std::isnan(report.clip_scores[0]));
  EXPECT_TRUE(std::isfinite(report.clip_scores[1]));
  const Error none = error_of([&] { measure_fad(codec, {fine}, {broken}); });
  EXPECT_EQ(none.kind(), ErrorKind::data);
  EXPECT_STREQ(none.what(), "no reference could be read, of 1");
  EXPECT_STREQ(error_of([&] { measure_fad(codec, {broken}, {fine}); }).what(),
               "no clip could be read, of 1");
}

TEST(ClipFad, StopsWhenAsked) {
  Sounds sounds;
  const fs::path fine = sounds.add("a.wav", 200, 0.5);
  const Error error = error_of([&] {
    measure_fad(Encodec::make(fad_codec_size, 1), {fine}, {fine}, {.stop = [] { return true; }});
  });
  EXPECT_EQ(error.kind(), ErrorKind::interrupted);
}

TEST(ClipFad, LoadsTheCodecOfAModelAlone) {
  const Encodec codec = load_codec(tiny_model);
  Sounds sounds;
  const FadReport report =
      measure_fad(codec, sounds.several("c", 2, 300, 0.4), sounds.several("r", 2, 200, 0.5));
  EXPECT_GT(report.score, 0);
  EXPECT_EQ(error_of([&] { load_codec(sounds.folder().path()); }).kind(), ErrorKind::io);
}

namespace {

struct Evaluated {
  TestFolder folder;
  VerifyReport clips;
  FadReport fad{.score = 2.5,
                .subset_scores = {2, 4},
                .mean = 3,
                .deviation = 1.5,
                .clip_scores = {7.25, NAN},
                .clips = 1,
                .references = 9};
  Evaluated() {
    clips.folder = folder.path();
    clips.clips = {{.id = "a", .text = "one", .file = "a.wav", .listed = true},
                   {.id = "b", .text = "two, with\nlines", .file = "b.wav", .listed = true}};
  }
  nlohmann::json results() const {
    const fs::path path = write_evaluation({.clips = clips,
                                            .fad = fad,
                                            .files = {"a.wav", "b.wav"},
                                            .reference = "REF",
                                            .model = "MODEL"});
    EXPECT_EQ(path, folder / "evaluation_results/evaluation_results.json");
    return nlohmann::json::parse(read_file(path));
  }
  std::string scores() const {
    return read_file(folder / "evaluation_results/per_sample_scores.csv");
  }
};

}  // namespace

TEST(EvaluationFiles, HaveTheLayoutOfConceptCaps) {
  const Evaluated run;
  run.folder.write("metadata.csv",
                   "id,prediction,filename\na,one,a.wav\nb,\"two, with\nlines\",b.wav\n");
  const nlohmann::json json = run.results();
  EXPECT_EQ(json["fad_score"], 2.5);
  EXPECT_EQ(json["fad_score_mean"], 3);
  EXPECT_EQ(json["fad_score_std"], 1.5);
  EXPECT_EQ(json["fad_per_sample"], nlohmann::json::parse("[7.25, null]"));
  EXPECT_EQ(json["fad_references"], 9);
  EXPECT_EQ(run.scores(),
            "id,prediction,filename,fad_score\na,one,a.wav,7.25\n"
            "b,\"two, with\nlines\",b.wav,\n");
}

TEST(EvaluationFiles, KeepScoresOfOthersAndReplaceTheirOwn) {
  Evaluated run;
  run.folder.write("evaluation_results/evaluation_results.json",
                   R"({"clap_score_mean": 0.5, "fad_score": 99})");
  run.folder.write("evaluation_results/per_sample_scores.csv",
                   "filename,fad_score,clap_score\nb.wav,1,0.25\na.wav,1,0.75\n");
  run.fad.clip_scores = {7.25, 8.5};
  const nlohmann::json json = run.results();
  EXPECT_EQ(json["clap_score_mean"], 0.5);
  EXPECT_EQ(json["fad_score"], 2.5);
  EXPECT_EQ(run.scores(), "filename,fad_score,clap_score\nb.wav,8.5,0.25\na.wav,7.25,0.75\n");
}

TEST(EvaluationFiles, WithoutMetadataTheManifestsClipsAreScored) {
  const Evaluated run;
  run.results();
  EXPECT_EQ(run.scores(),
            "id,text,filename,fad_score\na,one,a.wav,7.25\nb,\"two, with\nlines\",b.wav,\n");
}

}  // namespace tandem
