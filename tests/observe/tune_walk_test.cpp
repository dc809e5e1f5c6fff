#include "observe/tune_walk.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "config/resolve.h"
#include "observe/tune_preset.h"
#include "support/temporary_folder.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace {

bool never_enough() { return false; }

TuneTask made_task() {
  return {.guess = {{"data.batch_size", "16"},
                    {"data.num_workers", "16"},
                    {"data.buffer_size", "32"},
                    {"data.buckets", "8"},
                    {"training.gradient_accumulation_steps", "1"},
                    {"training.precision", "fp32"},
                    {"training.recompute", "false"}},
          .precisions = {"tf32", "bf16"}};
}

// A machine whose best settings are known: bf16, 100 clips, 4 workers, 8 buffered, 16 buckets.
struct MadeMachine {
  double limit = 1e9, fixed = 1.25e8, a_clip = 7.5e6;
  int measured = 0;

  TuneReading operator()(const std::string&, const TuneSettings& settings) {
    const double wobble = 1 + 0.01 * std::sin(37.0 * ++measured);
    const auto number = [&](const char* key) { return parse_double(settings.at(key)).value_or(0); };
    const double batch = number("data.batch_size");
    const bool again = settings.at("training.recompute") == "true";
    TuneReading reading{.outcome = ProbeOutcome::fits, .deviation = 0.01, .limit_bytes = limit};
    reading.peak_bytes = fixed + a_clip * batch * (again ? 0.5 : 1);
    if (reading.peak_bytes > limit) return {.outcome = ProbeOutcome::out_of_memory, .seconds = 1};
    const std::string& precision = settings.at("training.precision");
    double speed = 1000 * batch / (batch + 10) * (again ? 0.75 : 1);
    speed *= precision == "bf16" ? 3 : precision == "tf32" ? 1.5 : 1;
    speed *= number("data.buckets") == 16 ? 1.2 : 1;
    if (number("data.num_workers") < 4 || number("data.buffer_size") < 8) {
      speed *= 0.8;
      reading.wait_share = 0.2;
    }
    reading.speed = speed * wobble;
    reading.seconds = 1;
    return reading;
  }
};

TuneResult walk_on(MadeMachine& machine, const TuneTask& task) {
  return walk_settings(
      task,
      [&](const std::string& what, const TuneSettings& settings) {
        return machine(what, settings);
      },
      never_enough);
}

TuneReport made_report(bool generate) {
  TuneReport report{.gpu = "NVIDIA Pretend",
                    .guess_name = "preset pretend",
                    .subject = "stage gpt, data `corpus/`",
                    .date = "2026-11-15",
                    .seconds = 75};
  report.task.generate = generate;
  if (generate) {
    report.task.guess = {{"generation.batch_size", "8"}, {"generation.kv_cache", "same"}};
    report.result.found = {{"generation.batch_size", "48"}, {"generation.kv_cache", "same"}};
  } else {
    report.task.guess = made_task().guess;
    report.result.found = made_task().guess;
    report.result.found["data.batch_size"] = "100";
    report.result.found["training.precision"] = "bf16";
    report.result.found["training.recompute"] = "true";
  }
  const TuneReading slow{
      .outcome = ProbeOutcome::fits, .speed = 50, .peak_bytes = 1 << 20, .limit_bytes = 4 << 20};
  const TuneReading fast{
      .outcome = ProbeOutcome::fits, .speed = 125.5, .peak_bytes = 3 << 20, .limit_bytes = 4 << 20};
  report.result.guess_reading = slow;
  report.result.found_reading = fast;
  report.result.largest_batch = 110;
  report.result.largest_is_the_limit = true;
  report.result.trials = {{"guess", report.task.guess, slow},
                          {"batch", report.result.found, fast},
                          {"batch", report.result.found, {.outcome = ProbeOutcome::out_of_memory}}};
  return report;
}

}  // namespace

TEST(TuneWalk, FindsTheBestOfAMadeMachineWithinItsProbes) {
  MadeMachine machine;
  const TuneTask task = made_task();
  const TuneResult result = walk_on(machine, task);
  EXPECT_EQ(result.found.at("training.precision"), "bf16");
  EXPECT_NEAR(parse_double(result.found.at("data.batch_size")).value_or(0), 100, 6);
  EXPECT_EQ(result.found.at("data.num_workers"), "4");
  EXPECT_EQ(result.found.at("data.buffer_size"), "8");
  EXPECT_EQ(result.found.at("data.buckets"), "16");
  EXPECT_EQ(result.found.at("training.recompute"), "false");
  EXPECT_EQ(result.found.at("training.gradient_accumulation_steps"), "1");
  EXPECT_GT(result.found_reading.speed, 3 * result.guess_reading.speed);
  EXPECT_LE(machine.measured, 20);
  EXPECT_LE(machine.measured, expected_trials(task) + 6);
  EXPECT_EQ(static_cast<size_t>(machine.measured), result.trials.size());
}

TEST(TuneWalk, WhatTheUserSetStays) {
  MadeMachine machine;
  TuneTask task = made_task();
  task.held = {"training.precision", "data.num_workers", "data.buckets"};
  const TuneResult result = walk_on(machine, task);
  for (const TuneTrial& trial : result.trials)
    for (const std::string& key : task.held)
      EXPECT_EQ(trial.settings.at(key), task.guess.at(key)) << trial.what;
}

TEST(TuneWalk, AStepThatWasAskedForIsAccumulatedWhereItDoesNotFitAtOnce) {
  MadeMachine machine{.a_clip = 6e7};  // 12 at most
  TuneTask task = made_task();
  task.clips_a_step = task.most_batch = 64;
  task.recompute = false;
  const TuneResult result = walk_on(machine, task);
  const auto number = [&](const char* key) { return parse_int(result.found.at(key)).value_or(0); };
  const int64_t batch = number("data.batch_size");
  EXPECT_LE(batch, 12);
  EXPECT_GE(batch, 10);
  EXPECT_GE(batch * number("training.gradient_accumulation_steps"), 64);
  EXPECT_LE(batch * number("training.gradient_accumulation_steps"), 66);
}

TEST(TuneWalk, RecomputesWhereNothingFitsWithout) {
  MadeMachine machine{.a_clip = 1.2e9};
  const TuneResult result = walk_on(machine, made_task());
  EXPECT_EQ(result.found.at("training.recompute"), "true");
  EXPECT_EQ(result.found.at("data.batch_size"), "1");
  EXPECT_EQ(result.found.at("training.gradient_accumulation_steps"), "16");
}

TEST(TuneWalk, SaysWhenNothingFitsAtAll) {
  MadeMachine machine{.fixed = 2e9};
  try {
    walk_on(machine, made_task());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    EXPECT_STREQ(error.what(), "nothing that was tried fits this machine (out of memory)");
  }
}

TEST(TuneWalk, SettingsThatDoNotRunAreNotSearched) {
  int measured = 0;
  const auto fails = [&](const std::string&, const TuneSettings&) {
    ++measured;
    return TuneReading{.words = "there is no such corpus"};
  };
  try {
    walk_settings(made_task(), fails, never_enough);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the settings to begin with do not run: there is no such corpus");
  }
  EXPECT_EQ(measured, 1);
}

TEST(TuneWalk, WhatTheTimeWasTooShortForIsNamed) {
  MadeMachine machine;
  const TuneResult result = walk_settings(
      made_task(),
      [&](const std::string& what, const TuneSettings& settings) {
        return machine(what, settings);
      },
      [&] { return machine.measured >= 6; });
  EXPECT_LE(machine.measured, 6);
  ASSERT_FALSE(result.notes.empty());
  EXPECT_NE(result.notes.front().find("buckets"), std::string::npos) << result.notes.front();
  EXPECT_TRUE(result.found_reading.fits());
}

TEST(TuneWalk, TheBatchIsNeverLargerThanTheData) {
  MadeMachine machine;
  const TuneResult result = walk_settings(
      made_task(),
      [&](const std::string& what, const TuneSettings& settings) {
        TuneReading reading = machine(what, settings);
        reading.clips = 40;
        return reading;
      },
      never_enough);
  EXPECT_EQ(result.found.at("data.batch_size"), "40");
  const TuneResult one = walk_settings(
      made_task(),
      [&](const std::string& what, const TuneSettings& settings) {
        TuneReading reading = machine(what, settings);
        reading.clips = 1;
        return reading;
      },
      never_enough);
  EXPECT_EQ(one.found.at("data.batch_size"), "1");
  EXPECT_EQ(one.found.at("training.gradient_accumulation_steps"), "1") << "no clip twice in a step";
}

TEST(TuneWalk, WhatDoesNotRunTogetherIsTakenBackToWhatRan) {
  MadeMachine machine{.a_clip = 6e7};  // 12 at most: a step of 16 becomes two of 8
  TuneTask task = made_task();
  task.speed_counts = false;
  const TuneResult result = walk_settings(
      task,
      [&](const std::string& what, const TuneSettings& settings) {
        return what == "all together" ? TuneReading{.outcome = ProbeOutcome::out_of_memory}
                                      : machine(what, settings);
      },
      never_enough);
  EXPECT_EQ(result.found.at("training.gradient_accumulation_steps"), "1");
  EXPECT_TRUE(result.found_reading.fits());
  ASSERT_FALSE(result.notes.empty());
  EXPECT_NE(result.notes.back().find("did not run (out of memory): taken back to"),
            std::string::npos)
      << result.notes.back();
}

namespace {

// XTTS v2 on an H200 with 92 clips, as it was measured: 22 clips are the best of those that were
// tried, and accumulating them makes the optimizer's part of a clip smaller.
TuneReading h200(const TuneSettings& settings) {
  const std::map<std::string, std::pair<double, double>> batches{// s of sound/s, GiB
                                                                 {"64", {1194.86, 19.6}},
                                                                 {"91", {1068.08, 25.0}},
                                                                 {"45", {1465.56, 15.7}},
                                                                 {"22", {1583.74, 11.3}},
                                                                 {"11", {1097.61, 9.2}}};
  const auto found = batches.find(settings.at("data.batch_size"));
  if (found == batches.end()) return {.words = "nobody measured that"};
  TuneReading reading{.outcome = ProbeOutcome::fits,
                      .speed = found->second.first,
                      .deviation = 0.03,
                      .peak_bytes = found->second.second * 1073741824.0,
                      .limit_bytes = 139.8 * 1073741824.0,
                      .clips = 92,
                      .steps = 25};
  if (settings.at("training.gradient_accumulation_steps") == "3") reading.speed *= 1.152;
  if (settings.at("data.num_workers") == "12") reading.speed *= 0.91;
  const std::string& buffer = settings.at("data.buffer_size");
  if (buffer == "32") reading.speed *= 0.971;
  if (buffer == "16") reading.wait_share = 0.289;
  return reading;
}

TuneTask h200_task() {
  TuneTask task = made_task();
  task.guess["data.batch_size"] = "64";
  task.guess["data.num_workers"] = "24";
  task.guess["data.buffer_size"] = "64";
  task.guess["training.precision"] = "bf16";
  task.held = {"training.precision", "training.recompute", "data.buckets"};
  task.first_batch = 91;
  return task;
}

TuneResult walk_h200(const TuneTask& task) {
  return walk_settings(
      task, [](const std::string&, const TuneSettings& settings) { return h200(settings); },
      never_enough);
}

}  // namespace

TEST(TuneWalk, TheBestThatWasMeasuredIsFound) {
  const TuneResult result = walk_h200(h200_task());
  EXPECT_EQ(result.found.at("data.batch_size"), "22");
  EXPECT_EQ(result.found.at("data.num_workers"), "24");
  EXPECT_EQ(result.found.at("data.buffer_size"), "64")
      << "32 are 2.9 % slower: more than the doubt";
  for (const TuneTrial& trial : result.trials)
    EXPECT_LE(trial.reading.speed, result.found_reading.speed * 1.001) << trial.what;
}

TEST(TuneWalk, OfTwoThatAreAsFastTheOneWithLessMemoryIsFound) {
  TuneTask task = h200_task();
  task.held.insert({"data.num_workers", "data.buffer_size"});
  const TuneResult result = walk_settings(
      task,
      [](const std::string&, const TuneSettings& settings) {
        TuneReading reading = h200(settings);
        if (settings.at("data.batch_size") == "11") reading.speed = 1575;  // half a per cent less
        return reading;
      },
      never_enough);
  EXPECT_EQ(result.found.at("data.batch_size"), "11");
}

TEST(TuneWalk, AccumulationIsNoSpeed) {
  const TuneResult result = walk_h200(h200_task());
  for (const TuneTrial& trial : result.trials)
    EXPECT_EQ(trial.settings.at("training.gradient_accumulation_steps"), "1") << trial.what;
  // Where memory does not hold a step's clips at once, it has to be.
  MadeMachine machine{.a_clip = 6e7};  // 12 at most
  const TuneResult parts = walk_on(machine, made_task());
  EXPECT_EQ(parts.found.at("training.gradient_accumulation_steps"), "2");
}

namespace {

// MusicGen-small on an H200: the rate rises until about 512 clips; a measurement takes four seconds
// to start, then as long as its clips take.
struct ClipMachine {
  double passed = 0;
  std::vector<std::string> sizes;
  TuneReading operator()(const std::string&, const TuneSettings& settings) {
    sizes.push_back(settings.at("generation.batch_size"));
    const double clips = parse_double(sizes.back()).value_or(0);
    TuneReading reading{.outcome = ProbeOutcome::fits,
                        .speed = 90 * clips / (clips + 64),
                        .deviation = 0.004,
                        .peak_bytes = 4e9 + 5e7 * clips,
                        .limit_bytes = 1.5e11,
                        .seconds = 4 + clips / 90};
    reading.steps = 4;
    passed += reading.seconds;
    return reading;
  }
};

TuneResult generate_on(ClipMachine& machine, double seconds) {
  TuneTask task{.generate = true,
                .guess = {{"generation.batch_size", "2393"}, {"generation.kv_cache", "same"}},
                .held = {"generation.kv_cache"},
                .fixed_bytes = 4e9,
                .bytes_a_clip = 5e7,
                .first_batch = 2393};
  return walk_settings(
      task,
      [&](const std::string& what, const TuneSettings& settings) {
        return machine(what, settings);
      },
      never_enough, [&] { return seconds - machine.passed; });
}

}  // namespace

TEST(TuneWalk, GeneratingClimbsFromAModerateBatchWithinTheTime) {
  ClipMachine minute;
  const TuneResult result = generate_on(minute, 60);
  EXPECT_EQ(minute.sizes, (std::vector<std::string>{"64", "128", "256", "512", "1024"}));
  EXPECT_LE(minute.passed, 60);
  EXPECT_EQ(result.found.at("generation.batch_size"), "1024");
  EXPECT_EQ(result.guess_reading.outcome, ProbeOutcome::not_tried);
  EXPECT_FALSE(result.largest_is_the_limit);
  // With more time the curve goes on to where memory ends, and the guess is measured too.
  ClipMachine longer;
  const TuneResult whole = generate_on(longer, 300);
  EXPECT_EQ(longer.sizes.back(), "2393");
  EXPECT_TRUE(whole.guess_reading.fits());
}

TEST(TuneWalk, ATieEndsTheClimb) {
  ClipMachine machine;
  TuneTask task{.generate = true,
                .guess = {{"generation.batch_size", "2393"}, {"generation.kv_cache", "same"}},
                .held = {"generation.kv_cache"}};
  const TuneResult result = walk_settings(
      task,
      [&](const std::string& what, const TuneSettings& settings) {
        TuneReading reading = machine(what, settings);
        reading.speed = std::min(reading.speed, 60.5);
        return reading;
      },
      never_enough, [&] { return 40 - machine.passed; });
  EXPECT_EQ(machine.sizes, (std::vector<std::string>{"64", "128", "256"}));
  EXPECT_EQ(result.found.at("generation.batch_size"), "128") << "as fast, with less memory";
}

TEST(TuneWalk, TimeThatIsLeftIsUsed) {
  MadeMachine machine;
  double passed = 0;
  const auto slow_first = [&](const std::string& what, const TuneSettings& settings) {
    TuneReading reading = machine(what, settings);
    reading.seconds = machine.measured == 1 ? 31 : 4;
    passed += reading.seconds;
    return reading;
  };
  TuneTask task = made_task();
  task.held = {"training.precision", "training.recompute", "data.buckets", "data.batch_size",
               "data.buffer_size"};
  task.guess["data.num_workers"] = "16";
  // 29 seconds are left after a measurement of 31 that began with an empty cache.
  const TuneResult result =
      walk_settings(task, slow_first, never_enough, [&] { return 60 - passed; });
  EXPECT_EQ(result.trials.size(), 1U) << "as long again does not fit";
  passed = 0;
  machine.measured = 1;
  const TuneResult more =
      walk_settings(task, slow_first, never_enough, [&] { return 60 - passed; });
  EXPECT_GT(more.trials.size(), 2U);
  EXPECT_LE(passed, 60);
}

TEST(TuneWalk, TheSmallCacheIsToldAndNotTaken) {
  TuneTask task{.generate = true,
                .guess = {{"generation.batch_size", "8"}, {"generation.kv_cache", "same"}}};
  const auto measure = [](const std::string&, const TuneSettings& settings) {
    const double batch = parse_double(settings.at("generation.batch_size")).value_or(0);
    const double a_clip = settings.at("generation.kv_cache") == "int8" ? 5e6 : 1e7;
    if (batch * a_clip > 1e9) return TuneReading{.outcome = ProbeOutcome::out_of_memory};
    return TuneReading{.outcome = ProbeOutcome::fits,
                       .speed = batch,
                       .peak_bytes = batch * a_clip,
                       .limit_bytes = 1e9};
  };
  const TuneResult result = walk_settings(task, measure, never_enough);
  EXPECT_EQ(result.found.at("generation.kv_cache"), "same");
  EXPECT_NEAR(parse_double(result.found.at("generation.batch_size")).value_or(0), 87, 5);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_TRUE(result.notes[0].starts_with("generation.kv_cache=int8 with ")) << result.notes[0];
}

TEST(TunePreset, LoadsIsAppliedAndItsCommentsHoldTheFigures) {
  const TestFolder folder;
  const std::string file = (folder / "a/local.yaml").string();
  write_preset_part(file, made_report(false));
  const Resolved resolved = resolve({.config_file = file, .use_environment = false});
  EXPECT_EQ(resolved.config.data.batch_size, 100);
  EXPECT_EQ(resolved.config.data.num_workers, 16);
  EXPECT_EQ(resolved.config.training.precision, "bf16");
  EXPECT_TRUE(resolved.config.training.recompute);
  const std::string text = read_file(file);
  for (const char* words :
       {"# NVIDIA Pretend: stage gpt, data `corpus/`", "# 2026-11-15, 3 measurements in 1m 15s.",
        "125.50", "3.0 MiB of 4.0 MiB (75 %)", "largest batch that fits: 110",
        "data.batch_size=100 training.precision=bf16", "out of memory"})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
}

TEST(TunePreset, SaysWhatWasNotLookedForAndHowItWasMeasured) {
  TuneReport report = made_report(true);
  report.result.largest_is_the_limit = false;
  report.result.guess_reading = {.outcome = ProbeOutcome::not_tried};
  report.result.trials[1].reading.how = "100 of 1503 tokens, from the middle of a clip";
  const std::string tried = preset_part(report);
  for (const char* words :
       {"# largest batch tried: 110; more was not looked for\n",
        "# Speeds are those of 100 of 1503 tokens, from the middle of a clip.\n", "not measured"})
    EXPECT_NE(tried.find(words), std::string::npos) << words << "\n" << tried;
  EXPECT_EQ(tried.find("times the guess"), std::string::npos) << tried;
  report.result.largest_batch = 0;
  EXPECT_NE(preset_part(report).find("# largest batch that fits: not looked for\n"),
            std::string::npos);
}

TEST(TunePreset, FilesNamedInAnyEncodingAreToldInOneDocument) {
  TuneReport report = made_report(false);
  report.subject = "data `caf\xe9`";
  report.result.trials.front().reading.words = "cut off: \xe2\x82";
  const auto document = nlohmann::json::parse(tune_json(report, "x.yaml"));
  EXPECT_EQ(document["subject"], "data `caf\xef\xbf\xbd`");
}

TEST(TunePreset, TrainingAndGeneratingShareAFile) {
  const TestFolder folder;
  const std::string file = (folder / "both.yaml").string();
  write_preset_part(file, made_report(false));
  write_preset_part(file, made_report(true));
  write_preset_part(file, made_report(false));
  write_preset_part(file, made_report(true));
  const Resolved resolved = resolve({.config_file = file, .use_environment = false});
  EXPECT_EQ(resolved.config.data.batch_size, 100);
  EXPECT_EQ(resolved.config.generation.batch_size, 48);
  EXPECT_EQ(split(read_file(file), '\n').size(),
            split(preset_part(made_report(false)) + preset_part(made_report(true)), '\n').size());
}

TEST(TunePreset, AFileOfSomebodyElseIsNotOverwritten) {
  const TestFolder folder;
  const std::string file = folder.write("mine.yaml", "data:\n  batch_size: 3\n");
  try {
    write_preset_part(file, made_report(false));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_NE(std::string(error.what()).find("was not written by `tandem tune`"),
              std::string::npos);
  }
  EXPECT_EQ(read_file(file), "data:\n  batch_size: 3\n");
}

TEST(TunePreset, APlaceWhereNothingCanBeWrittenIsRefusedBeforeAnyTimeIsSpent) {
  const TestFolder folder;
  const std::string in_the_way = folder.write("file", "");
  try {
    check_preset_file(in_the_way + "/local/gpu.yaml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_NE(std::string(error.what()).find("nothing can be made in"), std::string::npos);
  }
  EXPECT_THROW(check_preset_file(folder.path()), Error);
  EXPECT_NO_THROW(check_preset_file(folder / "new/gpu.yaml"));
}

TEST(TunePreset, TheTableSetsWhatWasFoundAgainstTheGuess) {
  const std::string table = tune_table(made_report(false));
  const std::vector<std::string> lines = split(table, '\n');
  EXPECT_NE(lines[0].find("preset pretend"), std::string::npos) << table;
  EXPECT_NE(lines[0].find("found"), std::string::npos) << table;
  EXPECT_NE(table.find("times the guess"), std::string::npos) << table;
  EXPECT_NE(table.find("2.51"), std::string::npos) << table;
}

}  // namespace tandem
