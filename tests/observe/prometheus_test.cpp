#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "observe/prometheus_figures.h"
#include "support/captured.h"
#include "util/atomic_file.h"

namespace tandem::tests {
namespace {

bool tells(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

FigureValues everything() {
  FigureValues values{.build = {{"version", "1"}}, .run = {{"command", "train"}}};
  values.trains = true;
  values.total_steps = 100;
  values.step = StepReport{
      .step = 7, .loss = 2.5, .terms = {{"mel", 2}}, .audio_seconds_per_second = 10, .captures = 3};
  values.validation = StepReport{.step = 5, .validation = true, .loss = 2.75};
  values.seconds_left = 12;
  values.events = {{"memory", 1}};
  values.queues = {{.reading = {.name = "moved", .items = 7}, .ready = 0.5}};
  values.clips = MusicJobProgress{.total = 10, .done = 4, .failed = 1, .devices = {{.clips = 3}}};
  values.clip_devices = {"/GPU:0"};
  values.devices = {{.name = "/GPU:0", .utilisation = 0.25, .used = 1024, .limit = 4096}};
  return values;
}

}  // namespace

TEST(PrometheusText, EscapesLabelsAndHelpByTheirOwnRules) {
  EXPECT_EQ(prometheus_label_value("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
  EXPECT_EQ(prometheus_help("a\\b\"c\nd"), "a\\\\b\"c\\nd");
  EXPECT_EQ(prometheus_label_value("Größe {},=\t日本"), "Größe {},=\t日本");
}

TEST(PrometheusText, ReplacesWhatIsNoUtf8) {
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(prometheus_label_value("a\xFFz"), "a" + mark + "z");
  EXPECT_EQ(prometheus_label_value("\xC3"), mark) << "a character that was cut off";
  EXPECT_EQ(prometheus_label_value("\xC0\xAF"), mark + mark) << "longer than it need be";
  EXPECT_EQ(prometheus_label_value("\xED\xA0\x80"), mark + mark + mark) << "half of a pair";
  EXPECT_EQ(prometheus_label_value("\xF4\x8F\xBF\xBF"), "\xF4\x8F\xBF\xBF") << "the last one";
}

TEST(PrometheusText, SpellsNumbersSoThatTheyReadBackTheSame) {
  EXPECT_EQ(prometheus_number(0.1), "0.1");
  EXPECT_EQ(prometheus_number(-3), "-3");
  EXPECT_EQ(std::stod(prometheus_number(1.0 / 3)), 1.0 / 3);
  EXPECT_EQ(std::stod(prometheus_number(1e300)), 1e300);
  EXPECT_EQ(prometheus_number(std::numeric_limits<double>::quiet_NaN()), "NaN");
  EXPECT_EQ(prometheus_number(std::numeric_limits<double>::infinity()), "+Inf");
  EXPECT_EQ(prometheus_number(-std::numeric_limits<double>::infinity()), "-Inf");
}

TEST(PrometheusText, WritesHelpTypeAndSamples) {
  EXPECT_EQ(prometheus_text({{"a_total", PrometheusMetric::counter, "Things.", {{.value = 3}}},
                             {"left_out", PrometheusMetric::gauge, "Nothing.", {}},
                             {"b_ratio",
                              PrometheusMetric::gauge,
                              "A share.",
                              {{{{"d", "/GPU:0"}, {"e", "x"}}, 0.5}, {{{"d", "/GPU:1"}}, 1}}}}),
            "# HELP a_total Things.\n# TYPE a_total counter\na_total 3\n"
            "# HELP b_ratio A share.\n# TYPE b_ratio gauge\n"
            "b_ratio{d=\"/GPU:0\",e=\"x\"} 0.5\nb_ratio{d=\"/GPU:1\"} 1\n");
}

TEST(PrometheusText, RefusesWhatPrometheusWouldNotTake) {
  const auto refusal = [](const std::vector<PrometheusMetric>& metrics) {
    const Error error = error_of([&] { prometheus_text(metrics); });
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    return std::string(error.what());
  };
  EXPECT_EQ(refusal({{.name = "a b", .samples = {{}}}}),
            "`a b` is no name of a metric for Prometheus");
  EXPECT_EQ(refusal({{.name = "1a", .samples = {{}}}}),
            "`1a` is no name of a metric for Prometheus");
  EXPECT_EQ(refusal({{.name = "a", .samples = {{{{"__x", ""}}, 0}}}}),
            "`__x` is no name of a label for Prometheus");
  EXPECT_EQ(refusal({{.name = "a", .samples = {{}}}, {.name = "a", .samples = {{}}}}),
            "the metric `a` is there twice");
  EXPECT_EQ(refusal({{.name = "a", .samples = {{{{"x", "1"}}, 0}, {{{"x", "1"}}, 1}}}}),
            "`a{x=\"1\"}` has two values");
  EXPECT_EQ(refusal({{.name = "a", .samples = {{{{"x", "1"}, {"x", "2"}}, 0}}}}),
            "the label `x` is there twice");
}

TEST(RunFigures, OfATrainingGiveItsLastStep) {
  RunFigures figures({{"version", "1.2"}}, {{"command", "train"}});
  EXPECT_EQ(figures.text().find("tandem_train_"), std::string::npos) << "nothing has begun";
  figures.start("runs/a \"b\"", 5, 20);
  EXPECT_TRUE(tells(figures.text(), "tandem_train_step 5"));
  figures.take_step({.step = 6, .loss = 3, .skipped = "not finite"});
  figures.take_step({.step = 7,
                     .loss = std::numeric_limits<double>::quiet_NaN(),
                     .gradient_norm = 0.5,
                     .tokens_per_second = 1000,
                     .wait_share = 0.25,
                     .terms = {{"a \"term\"", 1}, {"b", 2}},
                     .captures = 4});
  figures.take_step({.step = 7, .validation = true, .loss = 2.5});
  figures.take_event("memory");
  figures.take_event("memory");
  figures.take_checkpoint();
  const std::string text = figures.text();
  for (const char* line :
       {"tandem_build_info{version=\"1.2\"} 1",
        "tandem_run_info{command=\"train\",folder=\"runs/a \\\"b\\\"\"} 1", "tandem_train_step 7",
        "tandem_train_planned_steps 20", "tandem_train_loss NaN",
        "tandem_train_loss_term{term=\"a \\\"term\\\"\"} 1", "tandem_train_gradient_norm 0.5",
        "tandem_train_tokens_per_second 1000", "tandem_train_data_wait_ratio 0.25",
        "tandem_train_graph_captures_total 4", "tandem_train_skipped_steps_total 1",
        "tandem_train_checkpoints_total 1", "tandem_train_validation_loss 2.5",
        "tandem_train_events_total{kind=\"memory\"} 2"})
    EXPECT_TRUE(tells(text, line)) << line << "\n" << text;
  EXPECT_EQ(text.find("tandem_generate_"), std::string::npos);
  EXPECT_EQ(text.find("audio_seconds"), std::string::npos) << "not known";
}

TEST(RunFigures, TellWhatShareOfTheTimeAQueueWasNotEmpty) {
  RunFigures figures({}, {});
  double empty = 0;
  const auto read = figures.watched([&] {
    return std::vector<QueueReading>{{.name = "moved", .items = 3, .empty_time = empty}};
  });
  read();
  EXPECT_EQ(figures.text().find("tandem_queue_ready_ratio"), std::string::npos) << "one reading";
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  read();
  EXPECT_TRUE(tells(figures.text(), "tandem_queue_ready_ratio{queue=\"moved\"} 1"));
  empty = 1000;
  EXPECT_EQ(read().front().empty_time, 1000) << "what was read goes on to who asked";
  EXPECT_TRUE(tells(figures.text(), "tandem_queue_ready_ratio{queue=\"moved\"} 0"));
  EXPECT_TRUE(tells(figures.text(), "tandem_queue_empty_seconds_total{queue=\"moved\"} 1000"));
  EXPECT_FALSE(figures.watched({})) << "the feed has gone";
  EXPECT_EQ(figures.text().find("tandem_queue"), std::string::npos);
}

TEST(RunFigures, OfGeneratedClipsCountThemByDevice) {
  RunFigures figures({}, {});
  figures.take_clips({.total = 9,
                      .done = 5,
                      .skipped = 1,
                      .failed = 2,
                      .sound_seconds = 30,
                      .devices = {{.clips = 2}, {.clips = 0, .lost = true}}},
                     {"/GPU:0", "/GPU:1"});
  figures.take_devices({{.name = "/GPU:0", .utilisation = -1, .used = 5}});
  const std::string text = figures.text();
  for (const char* line :
       {"tandem_generate_planned_clips 9", "tandem_generate_clips_done_total 5",
        "tandem_generate_clips_failed_total 2", "tandem_generate_clips_skipped_total 1",
        "tandem_generate_sound_seconds_total 30",
        "tandem_generate_device_clips_total{device=\"/GPU:0\"} 2",
        "tandem_generate_device_lost{device=\"/GPU:1\"} 1",
        "tandem_device_memory_bytes{device=\"/GPU:0\"} 5"})
    EXPECT_TRUE(tells(text, line)) << line << "\n" << text;
  EXPECT_EQ(text.find("utilization"), std::string::npos) << "not known";
}

TEST(RunFigures, CountersEndInTotalAndGaugesDoNot) {
  for (const PrometheusMetric& metric : metrics_of(everything())) {
    EXPECT_EQ(metric.name.ends_with("_total"), metric.type == PrometheusMetric::counter)
        << metric.name;
    EXPECT_FALSE(metric.samples.empty()) << metric.name << " is known and has no sample";
    EXPECT_TRUE(metric.help.ends_with(".")) << metric.name;
  }
}

// Words in the queries of the dashboard that begin as our metrics do.
TEST(GrafanaDashboard, NamesOnlyMetricsThatExist) {
  std::set<std::string> known;
  for (const PrometheusMetric& metric : metrics_of(everything())) known.insert(metric.name);
  const auto board = nlohmann::json::parse(read_file(TANDEM_SOURCE_DIR "/docs/grafana.json"));
  std::set<std::string> used;
  for (const auto& panel : board.at("panels")) {
    if (!panel.contains("targets")) continue;
    for (const auto& target : panel["targets"]) {
      const std::string query = target.at("expr");
      const auto is_part = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
      };
      for (auto at = query.begin(); at != query.end();) {
        const auto begin = std::find_if(at, query.end(), is_part);
        at = std::find_if_not(begin, query.end(), is_part);
        const std::string word(begin, at);
        if (word.starts_with("tandem_") || word.starts_with("process_")) used.insert(word);
      }
    }
  }
  EXPECT_GT(used.size(), 15U);
  for (const std::string& name : used) EXPECT_TRUE(known.contains(name)) << name;
}

TEST(MonitorDocs, NameEveryMetric) {
  const std::string page = read_file(TANDEM_SOURCE_DIR "/docs/monitor.md");
  for (const PrometheusMetric& metric : metrics_of(everything()))
    EXPECT_NE(page.find("`" + metric.name + "`"), std::string::npos) << metric.name;
}

}  // namespace tandem::tests
