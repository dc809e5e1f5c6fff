#include "data/corpus/corpus_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/corpus/corpus_files.h"
#include "data/corpus/report_page.h"
#include "data/corpus/svg_plot.h"

namespace tandem {
namespace {

struct Made {
  Dataset dataset;
  Scan scan;
};

Made made() {
  Made out;
  out.dataset.layout.root = "/data/my <corpus>";
  out.dataset.layout.why = "LJSpeech: because";
  for (int i = 0; i < 12; ++i) {
    ScannedClip one;
    one.clip.id = "id" + std::to_string(i);
    one.clip.path = "wavs/a b#" + std::to_string(i) + ".wav";
    one.clip.text = "<script>alert('x')</script> & \"more\"";
    one.clip.speaker = i < 9 ? "Ann" : "";
    one.clip.language = "en";
    one.clip.sample_rate = 16000;
    one.clip.channels = 1;
    one.clip.tokens = 10 + i;
    one.sound.facts = {.frames = 16000 * (i + 1),
                       .sample_rate = 16000,
                       .channels = 1,
                       .decoded = true,
                       .clipping = i == 0 ? .01f : 0,
                       .silence = i == 1 ? 1.f : .1f,
                       .dc = i == 2 ? -.05f : 0,
                       .loudness = -20,
                       .format = "wav pcm16"};
    out.scan.clips.push_back(one);
  }
  out.scan.clips[10].reason = DropReason::outlier;
  out.scan.clips[10].detail = "z";
  out.scan.clips[11].reason = DropReason::missing;
  out.scan.clips[11].clip.path = "new\nline\tand \\ <b>";
  out.scan.bad_rows.push_back({"metadata.csv:3", "no bar"});
  return out;
}

TEST(CorpusReport, SumsUpWhatIsKept) {
  const Made m = made();
  const CorpusSummary summary = summarise(m.dataset, m.scan);
  EXPECT_EQ(summary.found, 13);
  EXPECT_EQ(summary.kept.clips, 10);
  EXPECT_NEAR(summary.kept.hours, 55.0 / 3600, 1e-9);
  EXPECT_EQ(summary.speakers.at("Ann").clips, 9);
  EXPECT_EQ(summary.rates.at(16000).clips, 10);
  EXPECT_EQ(summary.clipped, 1);
  EXPECT_EQ(summary.silent, 1);
  EXPECT_EQ(summary.off_centre, 1);
  EXPECT_EQ(summary.seconds.least, 1);
  EXPECT_EQ(summary.seconds.most, 10);
  EXPECT_EQ(summary.dropped,
            (std::map<std::string, int64_t>{{"bad row", 1}, {"missing", 1}, {"outlier", 1}}));
}

TEST(CorpusReport, PercentilesAreOfTheSortedValues) {
  std::vector<double> values;
  for (int i = 100; i >= 0; --i) values.push_back(i);
  const Percentiles p = percentiles_of(values);
  EXPECT_EQ(p.least, 0);
  EXPECT_EQ(p.p5, 5);
  EXPECT_EQ(p.p50, 50);
  EXPECT_EQ(p.p95, 95);
  EXPECT_EQ(p.most, 100);
  EXPECT_EQ(p.mean, 50);
  EXPECT_EQ(percentiles_of({}).most, 0);
}

TEST(CorpusReport, PrintsATable) {
  const Made m = made();
  EXPECT_EQ(to_table(summarise(m.dataset, m.scan)),
            "layout       LJSpeech: because\n"
            "clips        10 of 13 kept, 0.9 min\n"
            "speakers     1: Ann (9 clips, 0.8 min), not named (1 clips, 0.2 min)\n"
            "languages    en\n"
            "rates        16000 Hz\n"
            "channels     1\n"
            "formats      wav pcm16\n"
            "seconds      1.0 to 10.0 s, median 6.0, 5-95 % 1.0 to 10.0\n"
            "tokens       10 to 19, median 15, 5-95 % 10 to 19\n"
            "loudness     -20.0 to -20.0 dBFS, median -20.0, 5-95 % -20.0 to -20.0\n"
            "sound        1 clips clip, 1 are silent, 1 have a DC offset; 19 % silence on average\n"
            "dropped      3\n"
            "         1  bad row         e.g. metadata.csv:3: no bar\n"
            "         1  missing         e.g. new\\nline\\tand \\\\ <b>\n"
            "         1  outlier         e.g. wavs/a b#10.wav: z\n");
}

TEST(CorpusReport, GivesTheSameAsJson) {
  const Made m = made();
  const nlohmann::ordered_json json = to_json(summarise(m.dataset, m.scan));
  EXPECT_EQ(json["clips"], 10);
  EXPECT_EQ(json["found"], 13);
  EXPECT_EQ(json["speakers"]["Ann"]["clips"], 9);
  EXPECT_EQ(json["dropped_by_reason"]["missing"], 1);
  EXPECT_EQ(json["seconds"]["max"], 10);
  EXPECT_EQ(json["clipped_clips"], 1);
}

TEST(CorpusReport, ListsDroppedClipsOneALine) {
  EXPECT_EQ(dropped_table(made().scan),
            "path\treason\tdetail\n"
            "metadata.csv:3\tbad row\tno bar\n"
            "wavs/a b#10.wav\toutlier\tz\n"
            "new\\nline\\tand \\\\ <b>\tmissing\t\n");
}

TEST(CorpusReport, PageEscapesTextAndLinks) {
  Made m = made();
  m.scan.clips[0].clip.id = "bytes \xE9";
  const std::string page =
      report_page(summarise(m.dataset, m.scan), m.dataset, m.scan, "/data/out/x.report.html");
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;more&quot;"),
            std::string::npos);
  EXPECT_NE(page.find("src=\"../my%20%3Ccorpus%3E/wavs/a%20b%230.wav\""), std::string::npos);
  EXPECT_NE(page.find("<h1>my &lt;corpus&gt;</h1>"), std::string::npos);
  EXPECT_NE(page.find("bytes ?"), std::string::npos) << "a page is UTF-8 whatever names hold";
  EXPECT_NE(page.find("class=\"odd\""), std::string::npos) << "the outlier is marked";
  EXPECT_EQ(page.find("http"), std::string::npos) << "no network";
  EXPECT_NE(page.find("prefers-color-scheme"), std::string::npos);
}

TEST(CorpusReport, PageOfNothingHasNoPlots) {
  const Dataset dataset;
  const Scan scan;
  const std::string page = report_page(summarise(dataset, scan), dataset, scan, "x.html");
  EXPECT_NE(page.find("nothing to show"), std::string::npos);
  EXPECT_EQ(page.find("nan"), std::string::npos);
}

TEST(SvgPlot, ShowsEqualValuesWithoutDividingByZero) {
  for (const std::string& plot :
       {svg_histogram({3, 3, 3}, "s"), svg_scatter({{0, 0, false}}, "s", "t"),
        svg_bars({{"a", 0}}, "h")}) {
    EXPECT_EQ(plot.find("nan"), std::string::npos) << plot;
    EXPECT_EQ(plot.find("inf"), std::string::npos) << plot;
    EXPECT_TRUE(plot.starts_with("<svg"));
  }
}

TEST(SvgPlot, KeepsEveryMarkedDot) {
  std::vector<Dot> dots(20000, Dot{1, 1, false});
  for (size_t i = 0; i < dots.size(); i += 1000) dots[i + 7].odd = true;
  const std::string plot = svg_scatter(dots, "s", "t");
  size_t odd = 0;
  for (size_t at = 0; (at = plot.find("\"odd\"", at)) != std::string::npos; ++at) ++odd;
  EXPECT_EQ(odd, 20u);
  EXPECT_LT(plot.size(), 400000u);
}

}  // namespace
}  // namespace tandem
