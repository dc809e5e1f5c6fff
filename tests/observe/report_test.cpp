#include "observe/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "observe/made_run.h"
#include "observe/report_charts.h"
#include "observe/report_html.h"
#include "util/scratch.h"
#include "util/text.h"

namespace tandem::tests {
namespace {

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Every element that is opened is closed in its turn; what script and style hold is no markup.
std::string first_unbalanced(const std::string& html) {
  const std::vector<std::string> alone = {"meta", "img", "!DOCTYPE", "br"};
  std::vector<std::string> open;
  for (size_t at = 0; (at = html.find('<', at)) != std::string::npos;) {
    const size_t end = html.find('>', at);
    if (end == std::string::npos) return "no end of a tag at " + html.substr(at, 30);
    const bool closes = html[at + 1] == '/';
    const size_t start = at + (closes ? 2 : 1);
    const std::string name = html.substr(start, html.find_first_of(" >", start) - start);
    at = end + 1;
    if (closes) {
      if (open.empty() || open.back() != name) return "</" + name + ">";
      open.pop_back();
    } else if (std::ranges::find(alone, name) == alone.end()) {
      open.push_back(name);
      if (name == "script" || name == "style") at = html.find("</" + name, at);
    }
  }
  return open.empty() ? "" : "<" + open.back() + ">";
}

nlohmann::json charts_in(const std::string& html) {
  const std::string mark = "id=\"charts\">";
  const size_t start = html.find(mark) + mark.size();
  return nlohmann::json::parse(html.substr(start, html.find("</script>", start) - start));
}

std::vector<std::string> titles_in(const std::string& html) {
  std::vector<std::string> titles;
  for (const auto& chart : charts_in(html)) titles.push_back(chart.at("title"));
  return titles;
}

const std::string hostile =
    "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&\xFF";

}  // namespace

TEST(Report, ShowsEverythingOfARun) {
  const TestFolder run;
  make_whole_run(run);
  const std::string html = make_report(run.path());
  for (const char* id : {"curves", "devices", "samples", "events", "plan", "settings"})
    EXPECT_EQ(count_of(html, "<section id=\"" + std::string(id) + "\">"), 1U) << id;
  EXPECT_EQ(titles_in(html),
            (std::vector<std::string>{"Loss", "Text", "Mel distance", "Accuracy", "Learning rate",
                                      "Gradient norm", "Speed", "Waiting for data", "Utilisation",
                                      "Memory", "Queues that were not empty"}));
  EXPECT_EQ(count_of(html, "<figure class=\"chart\""), titles_in(html).size());
  EXPECT_TRUE(contains(html, "<p class=\"state finished\">finished, last step at 20"));
  EXPECT_TRUE(contains(html, "<b>100 / 100</b><span>steps</span>"));
  EXPECT_TRUE(contains(html, "<b>3.0000</b><span>best validation, step 100</span>"));
  EXPECT_TRUE(contains(html,
                       "<td>/GPU:0</td><td>NVIDIA Pretend</td><td>85 %</td><td>5 %</td>"
                       "<td>80 %</td><td>1.0 GiB</td><td>4.0 GiB</td>"));
  EXPECT_TRUE(contains(html, "<td>memory</td><td>the micro-batch was halved</td>"));
  EXPECT_TRUE(contains(html, "<td>parameters</td><td>518 M</td>"));
  EXPECT_TRUE(contains(html, "stage: gpt  # &lt;b&gt; &amp; &quot;quotes&quot;"));
  EXPECT_EQ(count_of(html, "<audio controls"), 2U);
  EXPECT_EQ(count_of(html, "src=\"data:image/png;base64,iVBORw0KGgo"), 2U);
  EXPECT_TRUE(contains(html, "<summary>1 earlier</summary>"));
}

TEST(Report, IsWellFormedAndAsksForNothingOutside) {
  const TestFolder run;
  make_whole_run(run);
  const std::string html = make_report(run.path());
  EXPECT_EQ(first_unbalanced(html), "");
  EXPECT_TRUE(contains(html, "default-src 'none'"));
  EXPECT_EQ(count_of(html, "http://") + count_of(html, "https://"), 1U);  // the name of SVG
  EXPECT_TRUE(contains(html, "\"http://www.w3.org/2000/svg\""));
  EXPECT_EQ(count_of(html, "src=\"data:"), count_of(html, "src=\""));
}

TEST(Report, CurvesHoldTheRunsOwnFigures) {
  const TestFolder run;
  make_whole_run(run);
  const auto loss = charts_in(make_report(run.path())).at(0).at("lines");
  ASSERT_EQ(loss.size(), 3U);
  EXPECT_EQ(loss[0].at("name"), "train");
  EXPECT_EQ(loss[0].at("x").size(), 100U);
  EXPECT_NEAR(loss[0].at("y")[9].get<double>(), made_step(10).loss, 1e-4);
  EXPECT_EQ(loss[1].at("name"), "train, smoothed");
  EXPECT_EQ(loss[2].at("name"), "validation");
  EXPECT_EQ(loss[2].at("x"), nlohmann::json({20, 40, 60, 80, 100}));
  EXPECT_NEAR(loss[2].at("y")[4].get<double>(), 3, 1e-9);
}

TEST(Report, WhatComesFromOutsideCannotBecomeMarkup) {
  const TestFolder run;
  put(run / "config.yaml", hostile);
  RunEvents events(run / "events.jsonl");
  RunEvent beginning = beginning_event(0, 100);
  beginning.devices = {{hostile, hostile}};
  events.add(beginning);
  events.add({.kind = "plan", .rows = {{hostile, hostile}}});
  events.add({.kind = hostile, .step = 1, .text = hostile});
  MetricsFile metrics(run / "metrics.jsonl", 0);
  for (int64_t step = 1; step <= 3; ++step)
    metrics.add({.step = step, .loss = 1, .terms = {{hostile, 1.0}}});
  make_timeline(run, hostile);
  write_sample(run.path(), made_sample(1, "x", hostile));
  run.write("samples/step-1/" + std::string("<img src=x onerror=alert(3)>&.txt"), hostile);
  const std::string html = make_report(run.path());
  EXPECT_EQ(first_unbalanced(html), "");
  EXPECT_EQ(count_of(html, "<script"), 2U);
  EXPECT_FALSE(contains(html, "<img src=x"));
  EXPECT_FALSE(contains(html, "<script>alert"));
  EXPECT_FALSE(contains(html, "\xFF"));
  EXPECT_TRUE(
      contains(html, "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&gt;"));
  EXPECT_EQ(charts_in(html).size(), 9U);
}

TEST(Report, LeavesOutWhatIsMissing) {
  const TestFolder run;
  put(run / "metrics.jsonl",
      "{\"step\":1,\"split\":\"train\",\"loss\":2}\n"
      "{\"step\":2,\"split\":\"train\",\"loss\":null}\n"
      "{\"step\":3,\"split\":\"train\",\"loss\":1}\n{\"step\":4,\"lo");
  const std::string html = make_report(run.path());
  EXPECT_EQ(first_unbalanced(html), "");
  EXPECT_EQ(titles_in(html), (std::vector<std::string>{"Loss"}));
  EXPECT_EQ(charts_in(html)[0].at("lines")[0].at("x"), nlohmann::json({1, 3}));
  for (const char* id : {"devices", "samples", "events", "plan", "settings"})
    EXPECT_FALSE(contains(html, "<section id=\"" + std::string(id))) << id;
}

TEST(Report, OfARunWithoutAStepIsAPage) {
  const TestFolder run;
  put(run / "config.yaml", "a: 1\n");
  const std::string html = make_report(run.path());
  EXPECT_EQ(first_unbalanced(html), "");
  EXPECT_TRUE(charts_in(html).empty());
  EXPECT_TRUE(contains(html, "waiting for its first step"));
}

TEST(Report, KeepsToItsRoomForSamples) {
  const TestFolder run;
  put(run / "config.yaml", "");
  for (int64_t step = 1; step <= 5; ++step)
    write_sample(run.path(), made_sample(step, "a", "take " + std::to_string(step)));
  const std::string few = make_report(run.path(), {.most_steps = 2});
  EXPECT_EQ(count_of(few, "<audio"), 2U);
  EXPECT_TRUE(contains(few, "take 5") && contains(few, "take 4") && !contains(few, "take 3"));
  EXPECT_TRUE(contains(few, "More of them are in the folder"));
  const size_t one = std::filesystem::file_size(run / "samples/step-5/a.wav") +
                     std::filesystem::file_size(run / "samples/step-5/a.png");
  const std::string small = make_report(run.path(), {.most_sample_bytes = one});
  EXPECT_EQ(count_of(small, "<audio"), 1U);
  EXPECT_EQ(count_of(small, "<img"), 1U);
  EXPECT_TRUE(contains(small, "take 1"));
  EXPECT_FALSE(contains(make_report(run.path()), "More of them"));
}

TEST(Report, IsWrittenIntoTheFolder) {
  const TestFolder run;
  make_whole_run(run);
  EXPECT_EQ(write_report(run.path()), run / "report.html");
  EXPECT_EQ(contents(run / "report.html"), make_report(run.path()));
}

TEST(Report, OfAFolderThatIsNoRunIsRefused) {
  const TestFolder run;
  EXPECT_EQ(thrown_by([&] { make_report(run.path()); }).kind, "config");
  put(run / "config.yaml", "");
  std::filesystem::create_directory(run / "report.html");
  put(run / "report.html/x", "");
  const Thrown thrown = thrown_by([&] { write_report(run.path()); });
  EXPECT_EQ(thrown.kind, "io");
  EXPECT_TRUE(contains(thrown.sentence, (run / "report.html").string())) << thrown.sentence;
}

TEST(ReportHtml, EscapesAndMendsText) {
  EXPECT_EQ(html_escaped("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(html_escaped("ж € 🎯\n\t"), "ж € 🎯\n\t");
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(html_escaped("\xC0\xBC"), mark + mark) << "an overlong `<`";
  EXPECT_EQ(html_escaped("\xE2\x82"), mark + mark) << "cut off";
  EXPECT_EQ(html_escaped("\xED\xA0\x80"), mark + mark + mark) << "half of a pair";
  EXPECT_EQ(html_escaped(std::string("\0\x01\x7F", 3)), mark + mark + mark);
}

TEST(ReportHtml, Base64IsThatOfTheStandard) {  // RFC 4648, 10
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xFF\xFE\xFB"), "//77");
}

TEST(ReportCharts, ThinningKeepsEveryPeak) {
  ChartLine line{.name = "x"};
  for (int i = 0; i < 100000; ++i) {
    line.x.push_back(i);
    line.y.push_back(i == 31415 ? 50 : i == 70000 ? -50 : std::sin(i));
  }
  const ChartLine thin = thinned(line, 500);
  EXPECT_LE(thin.x.size(), 1000U);
  EXPECT_EQ(*std::ranges::max_element(thin.y), 50);
  EXPECT_EQ(*std::ranges::min_element(thin.y), -50);
  EXPECT_TRUE(std::ranges::is_sorted(thin.x));
  line.y[500] = NAN;
  EXPECT_TRUE(std::ranges::any_of(thinned(line, 500).y, [](double y) { return std::isnan(y); }));
}

TEST(ReportCharts, SmoothingFollowsWithoutABias) {
  EXPECT_NEAR(smoothed(std::vector<double>(100, 3.5)).front(), 3.5, 1e-12);
  EXPECT_NEAR(smoothed(std::vector<double>(100, 3.5)).back(), 3.5, 1e-12);
}

TEST(ReportCharts, AnInterruptedRunIsDrawnInterrupted) {
  RunRecord run;
  for (int i = 0; i < 20; ++i)
    run.timeline.push_back({.time = 1000.0 + i + (i >= 10 ? 3600 : 0),
                            .devices = {{.name = "/GPU:0", .utilisation = 0.5}}});
  const auto charts = timeline_charts(run);
  ASSERT_EQ(charts.size(), 2U);
  EXPECT_EQ(charts[0].title, "Utilisation");
  EXPECT_EQ(charts[0].lines.at(0).y.size(), 21U);
  EXPECT_TRUE(std::isnan(charts[0].lines[0].y[10]));
}

}  // namespace tandem::tests
