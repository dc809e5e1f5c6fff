#include "observe/metrics_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "util/child.h"
#include "util/scratch.h"
#include "util/text.h"

namespace tandem::tests {
namespace {

StepReport step_of(int64_t step, double loss = 1.5) {
  return {.step = step,
          .total_steps = 100,
          .loss = loss,
          .gradient_norm = 0.5,
          .learning_rate = 1e-3,
          .tokens_per_second = 1000,
          .wait_share = 0.25};
}

// Every line must be a whole object.
std::vector<nlohmann::json> lines_of(const std::filesystem::path& path) {
  std::vector<nlohmann::json> lines;
  const std::string text = contents(path);
  EXPECT_TRUE(text.empty() || text.back() == '\n');
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    lines.push_back(nlohmann::json::parse(line, nullptr, false));
    EXPECT_TRUE(lines.back().is_object()) << line;
  }
  return lines;
}

std::vector<int64_t> steps_of(const std::filesystem::path& path) {
  std::vector<int64_t> steps;
  for (const auto& line : lines_of(path)) steps.push_back(line.at("step").get<int64_t>());
  return steps;
}

using Steps = std::vector<int64_t>;

}  // namespace

TEST(MetricsFile, HasOneObjectAStep) {
  const TestFolder scratch;
  const auto path = scratch / "metrics.jsonl";
  MetricsFile metrics(path, 0);
  metrics.add(step_of(1));
  auto line = lines_of(path).at(0);  // written at once, not at the end
  EXPECT_GT(line.at("time").get<double>(), 1.7e9);
  line.erase("time");
  EXPECT_EQ(line, nlohmann::json::parse(R"({"step": 1, "split": "train", "loss": 1.5,
      "gradient_norm": 0.5, "learning_rate": 0.001, "tokens_per_second": 1000.0, "wait_share": 0.25})"));
  metrics.add({.step = 1, .validation = true, .loss = 2.5});
  line = lines_of(path).at(1);
  line.erase("time");
  EXPECT_EQ(line, nlohmann::json::parse(R"({"step": 1, "split": "val", "loss": 2.5})"));
}

TEST(MetricsFile, HasAllThatWasMeasured) {
  const TestFolder scratch;
  MetricsFile metrics(scratch / "m", 0);
  StepReport report = step_of(3);
  report.terms = {{"text", 0.5}, {"mel", 1.25}};
  report.audio_seconds_per_second = 812;
  report.skipped = "the gradient is not finite";
  report.memory_used = uint64_t{5} << 30;
  report.gpu_utilisation = 0.97;
  report.captures = 4;
  metrics.add(report);
  const auto line = lines_of(scratch / "m").at(0);
  EXPECT_EQ(line.at("terms"), nlohmann::json::parse(R"({"text": 0.5, "mel": 1.25})"));
  EXPECT_EQ(line.at("audio_seconds_per_second"), 812);
  EXPECT_EQ(line.at("skipped"), "the gradient is not finite");
  EXPECT_EQ(line.at("memory_used"), uint64_t{5} << 30);
  EXPECT_EQ(line.at("gpu_utilisation"), 0.97);
  EXPECT_EQ(line.at("captures"), 4);
  metrics.add({.step = 3, .validation = true, .loss = 2, .terms = {{"accuracy", 0.75}}});
  EXPECT_EQ(lines_of(scratch / "m").at(1).at("terms").at("accuracy"), 0.75);
}

TEST(MetricsFile, WritesNullForWhatIsNotFiniteAndMendsNames) {
  const TestFolder scratch;
  MetricsFile metrics(scratch / "m", 0);
  StepReport report = step_of(1, std::numeric_limits<double>::quiet_NaN());
  report.terms = {{"bad \xFF name", std::numeric_limits<double>::infinity()}};
  metrics.add(report);
  const auto line = lines_of(scratch / "m").at(0);
  EXPECT_TRUE(line.at("loss").is_null());
  EXPECT_TRUE(line.at("terms").at("bad \xEF\xBF\xBD name").is_null());
}

TEST(MetricsFile, KeepsLossesToTheLastBit) {
  const TestFolder scratch;
  const double loss = 0.1 + 0.2;
  MetricsFile(scratch / "m", 0).add(step_of(1, loss));
  EXPECT_EQ(lines_of(scratch / "m").at(0)["loss"].get<double>(), loss);
}

TEST(MetricsFile, HasEachStepOnceAfterAResume) {
  const TestFolder scratch;
  const auto path = scratch / "m";
  {
    MetricsFile metrics(path, 0);
    for (int64_t step = 1; step <= 7; ++step) metrics.add(step_of(step));
  }
  MetricsFile metrics(path, 5);  // the checkpoint was saved after step 5
  EXPECT_EQ(steps_of(path), (Steps{1, 2, 3, 4, 5}));
  for (int64_t step = 6; step <= 8; ++step) metrics.add(step_of(step));
  EXPECT_EQ(steps_of(path), (Steps{1, 2, 3, 4, 5, 6, 7, 8}));
}

// What failed behind it is made up for, and the validation with it.
TEST(MetricsFile, HasAValidationThatIsMadeUpForOnce) {
  const TestFolder scratch;
  const auto path = scratch / "metrics.jsonl";
  {
    MetricsFile metrics(path, 0);
    metrics.add(step_of(1));
    metrics.add({.step = 1, .validation = true, .best = true, .loss = 2.5});
  }
  MetricsFile metrics(path, 1);
  metrics.add({.step = 1, .validation = true, .best = true, .loss = 2.5});
  metrics.add(step_of(2));
  metrics.add({.step = 2, .validation = true, .loss = 2.75});
  EXPECT_EQ(steps_of(path), (Steps{1, 1, 2, 2}));
  EXPECT_EQ(lines_of(path).at(1).at("best"), true);
  EXPECT_FALSE(lines_of(path).at(3).contains("best"));
}

TEST(MetricsFile, AFreshRunInAnOldFolderBeginsAnew) {
  const TestFolder scratch;
  MetricsFile(scratch / "m", 0).add(step_of(1));
  MetricsFile again(scratch / "m", 0);
  EXPECT_EQ(steps_of(scratch / "m"), Steps{});
}

TEST(MetricsFile, DropsABrokenLastLine) {
  const TestFolder scratch;
  const auto path = scratch / "m";
  put(path, "{\"step\":1,\"loss\":1}\n{\"step\":2,\"lo");
  MetricsFile metrics(path, 2);
  metrics.add(step_of(3));
  EXPECT_EQ(steps_of(path), (Steps{1, 3}));
}

TEST(MetricsFile, DropsWhatIsNoMetric) {
  const TestFolder scratch;
  const auto path = scratch / "m";
  put(path, "\n[1]\nnull\n{\"step\":\"two\"}\n{\"step\":1}\n{\"loss\":1}\n");
  MetricsFile metrics(path, 2);
  EXPECT_EQ(steps_of(path), Steps{1});
}

TEST(MetricsFile, ThatCannotBeOpenedIsAnIoError) {
  const TestFolder scratch;
  put(scratch / "plain", "");
  const auto path = scratch / "plain" / "m";
  const Thrown thrown = thrown_by([&] { MetricsFile metrics(path, 0); });
  EXPECT_EQ(thrown.kind, "io");
  EXPECT_EQ(thrown.sentence, "cannot write `" + path.string() + "`");
  EXPECT_EQ(thrown_by([&] { MetricsFile metrics(scratch.path(), 0); }).kind, "io");
}

TEST(MetricsFile, ThatCannotGrowIsAnIoError) {
  const TestFolder scratch;
  const auto path = scratch / "m";
  const ChildEnd end = in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{400, 400};
    setrlimit(RLIMIT_FSIZE, &limit);
    MetricsFile metrics(path, 0);
    const Thrown thrown = thrown_by([&] {
      for (int64_t step = 1; step < 100; ++step) metrics.add(step_of(step));
    });
    std::printf("%s|%s|%s", thrown.kind.c_str(), thrown.sentence.c_str(), thrown.hint.c_str());
  });
  EXPECT_EQ(end.out, "io|cannot write `" + path.string() + "`|is the disk full?");
}

}  // namespace tandem::tests
