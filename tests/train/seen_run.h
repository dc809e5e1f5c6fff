// A run as a test sees it: what it reported, how it ended, what it said.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "support/captured.h"
#include "support/temporary_folder.h"
#include "tandem/trainer.h"
#include "util/child.h"

namespace tandem {

// "step 3 loss", "step 3 mel_loss", "step 3 norm", "validation 4 accuracy", …
using Figures = std::map<std::string, double>;

inline void note(const StepReport& report, Figures& figures) {
  const std::string of =
      fmt::format("{} {} ", report.validation ? "validation" : "step", report.step);
  figures[of + "loss"] = report.loss;
  if (!report.validation) figures[of + "norm"] = report.gradient_norm;
  for (const auto& [name, value] : report.terms) figures[of + name] = value;
}

struct Seen {
  TrainResult result;
  Error error{ErrorKind::internal, ""};
  bool failed = false;
  std::map<int64_t, double> train, validation;  // losses
  Figures figures;
  std::string out, err;
};

inline Seen run(const Config& config, TrainHooks hooks = {}) {
  Seen seen;
  const auto on_step = hooks.on_step;
  hooks.on_step = [&seen, on_step](const StepReport& report) {
    (report.validation ? seen.validation : seen.train)[report.step] = report.loss;
    note(report, seen.figures);
    if (on_step) on_step(report);
  };
  const Captured said = capture([&] {
    try {
      seen.result = train(config, hooks);
    } catch (const Error& error) {
      seen.error = error;
      seen.failed = true;
    }
  });
  seen.out = said.out, seen.err = said.err;
  return seen;
}

// Of a run in a process of its own, since devices are configured once a process.
inline Figures figures_on(const DeviceRequest& devices, const Config& config) {
  const TestFolder folder;
  const auto path = folder / "figures";
  const tests::ChildEnd end = tests::in_child([&] {
    configure_devices(devices);
    Figures figures;
    train(config, {.on_step = [&](const StepReport& report) { note(report, figures); }});
    std::ofstream file(path);
    for (const auto& [name, value] : figures) file << fmt::format("{}={:a}\n", name, value);
  });
  EXPECT_EQ(end.code, 0) << end.err;
  Figures figures;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t equals = line.rfind('=');
    figures[line.substr(0, equals)] = std::strtod(line.c_str() + equals + 1, nullptr);
  }
  return figures;
}

// The same figures, each within `allowed` of itself or of the loss it is told with, whichever is
// larger.
inline void expect_near(const Figures& found, const Figures& expected, double allowed) {
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(found.size(), expected.size());
  for (const auto& [name, value] : expected) {
    ASSERT_TRUE(found.contains(name)) << name;
    const double loss = expected.at(name.substr(0, name.rfind(' ')) + " loss");
    EXPECT_NEAR(found.at(name), value, allowed * std::max(std::abs(value), std::abs(loss))) << name;
  }
}

}  // namespace tandem
