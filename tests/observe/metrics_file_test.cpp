#include "observe/metrics_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

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
  const auto line = lines_of(path).at(0);  // written at once, not at the end
  EXPECT_EQ(line, nlohmann::json::parse(R"({"step": 1, "split": "train", "loss": 1.5,
      "gradient_norm": 0.5, "learning_rate": 0.001, "tokens_per_second": 1000.0, "wait_share": 0.25})"));
  metrics.add({.step = 1, .validation = true, .loss = 2.5});
  EXPECT_EQ(lines_of(path).at(1),
            nlohmann::json::parse(R"({"step": 1, "split": "val", "loss": 2.5})"));
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
