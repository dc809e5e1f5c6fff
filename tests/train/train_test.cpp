// Whole runs on simulated devices.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "checkpoint/run_folder.h"
#include "device/simulated.h"
#include "support/captured.h"
#include "support/temporary_folder.h"
#include "tandem/trainer.h"
#include "util/signals.h"

namespace tandem {
namespace {

Config small_run(const std::filesystem::path& folder, int64_t steps) {
  Config config;
  config.data.train_data = TANDEM_SOURCE_DIR "/LICENSE";
  config.data.batch_size = 8;
  config.data.buffer_size = 12;
  config.data.model_start_delay = 0.5;
  config.training.max_steps = steps;
  config.training.save_step = 10;
  config.training.val_step = 10;
  config.training.check_replicas = 5;
  config.training.collective_timeout = 20;
  config.paths.checkpoint_dir = folder.string();
  return config;
}

void configure(int gpus, bool dual) {
  DeviceRequest request;
  request.simulate_gpus = gpus;
  request.multi_gpu = true;
  if (dual) {
    request.data_gpu = "0";
    request.model_gpu = "1";
  }
  capture([&] { configure_devices(request); });
}

// Runs quietly; the losses of every step, by name of the split.
struct Losses {
  std::map<int64_t, double> train, validation;
};
TrainResult run(const Config& config, Losses* losses = nullptr, const TrainOptions& options = {}) {
  TrainHooks hooks;
  hooks.on_step = [&](const StepReport& report) {
    if (losses) (report.validation ? losses->validation : losses->train)[report.step] = report.loss;
  };
  TrainResult result;
  std::exception_ptr failure;
  capture([&] {
    try {
      result = train(config, hooks, options);
    } catch (...) {
      failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
  return result;
}

NamedTensors weights_in(const std::filesystem::path& folder) {
  return RunFolder(folder).load_latest()->weights;
}

void expect_same_bits(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(at::equal(a[i].second, b[i].second)) << a[i].first;
}

TEST(Train, LossFalls) {
  TestFolder folder;
  configure(2, /*dual=*/true);
  const TrainResult result = run(small_run(folder / "run", 60));
  EXPECT_GT(result.first_loss, 5.0);
  EXPECT_LT(result.last_loss, 3.6);
  EXPECT_LT(result.validation_loss.value(), 3.8);
}

TEST(Train, DualRunPreparesOnTheDataDeviceAndTrainsOnTheModelDevice) {
  TestFolder folder;
  configure(2, /*dual=*/true);
  const TrainResult result = run(small_run(folder / "run", 20));
  const auto& data = result.devices.at("/GPU:0").by_name;
  const auto& model = result.devices.at("/GPU:1").by_name;
  EXPECT_GE(data.at("aten::index_select"), 20u);  // one a batch: cutting windows out of the text
  // Nothing but preparation ran on the data device.
  const std::set<std::string> preparation = {
      "aten::_to_copy",     "aten::add",        "aten::arange",
      "aten::contiguous",   "aten::copy_",      "aten::clone",
      "aten::empty",        "aten::empty_like", "aten::fill_",
      "aten::index_select", "aten::narrow",     "aten::resize_",
      "aten::slice",        "aten::to",         "aten::unsqueeze",
      "aten::view",         "aten::as_strided", "aten::empty_strided",
      "aten::lift_fresh",   "aten::detach"};
  for (const auto& [name, count] : data) EXPECT_TRUE(preparation.count(name)) << name;
  for (const char* only_model :
       {"aten::linear", "aten::layer_norm", "aten::scaled_dot_product_attention",
        "aten::native_layer_norm_backward", "aten::linalg_vector_norm"}) {
    EXPECT_EQ(data.count(only_model), 0u) << only_model;
    EXPECT_GE(model.at(only_model), 20u) << only_model;
  }
  EXPECT_GT(result.devices.at("/GPU:1").peak_bytes, 1000000u);
  EXPECT_LT(result.devices.at("/GPU:0").peak_bytes, 1000000u);
}

TEST(Train, GivesTheSameOnEveryStrategy) {
  TestFolder folder;
  std::vector<Losses> all;
  struct Plan {
    int gpus;
    bool dual;
  };
  for (const Plan plan :
       {Plan{0, false}, Plan{1, false}, Plan{2, true}, Plan{4, false}, Plan{4, true}}) {
    if (fork() == 0) {  // devices are configured once a process
      configure(plan.gpus, plan.dual);
      Config config = small_run(folder / std::to_string(all.size()), 20);
      config.training.multi_gpu = true;
      run(config);
      _exit(0);
    }
    int status = 0;
    wait(&status);
    EXPECT_EQ(status, 0);
    all.emplace_back();
  }
  const NamedTensors reference = weights_in(folder / "0");
  for (size_t i = 1; i < all.size(); ++i) {
    const NamedTensors other = weights_in(folder / std::to_string(i));
    for (size_t p = 0; p < reference.size(); ++p) {
      EXPECT_TRUE(at::allclose(reference[p].second, other[p].second, 1e-4, 1e-5))
          << i << " " << reference[p].first;
    }
  }
}

TEST(Train, ResumesToTheSameBits) {
  TestFolder folder;
  configure(3, /*dual=*/true);
  Losses straight, halves;
  run(small_run(folder / "straight", 40), &straight);
  run(small_run(folder / "halves", 20), &halves);
  const TrainResult second = run(small_run(folder / "halves", 40), &halves);
  EXPECT_EQ(second.first_step, 20);
  EXPECT_EQ(halves.train, straight.train);
  EXPECT_EQ(halves.validation, straight.validation);
  expect_same_bits(weights_in(folder / "halves"), weights_in(folder / "straight"));
}

TEST(Train, StopsOnRequestWithASavedCheckpointAndGoesOnFromIt) {
  TestFolder folder;
  configure(3, /*dual=*/false);
  Config config = small_run(folder / "run", 40);
  config.training.multi_gpu = true;
  TrainHooks hooks;
  hooks.on_step = [](const StepReport& report) {
    if (report.step == 13) request_stop(StopRequest::terminated);
  };
  Error error(ErrorKind::internal, "");
  capture([&] { error = error_of([&] { train(config, hooks); }); });
  EXPECT_EQ(error.kind(), ErrorKind::terminated);
  EXPECT_EQ(exit_code(error.kind()), 143);
  const int64_t stopped = RunFolder(folder / "run").latest_state()->step;
  EXPECT_GE(stopped, 13);
  EXPECT_LE(stopped, 15);
  request_stop(StopRequest::none);
  EXPECT_EQ(run(config).first_step, stopped);

  Config straight = config;
  straight.paths.checkpoint_dir = (folder / "straight").string();
  run(straight);
  expect_same_bits(weights_in(folder / "run"), weights_in(folder / "straight"));
}

// Whoever asks a run to stop waits for it.
TEST(Train, LeavesAValidationForTheRunThatGoesOn) {
  TestFolder folder;
  configure(3, /*dual=*/false);
  Config config = small_run(folder / "straight", 20);
  config.training.multi_gpu = true;
  Losses straight;
  run(config, &straight);
  struct Case {
    int64_t asked, stopped;  // after these steps
  };
  // Known of before the step, or within the validation behind it; at the end likewise.
  for (const Case& one : {Case{9, 10}, Case{10, 10}, Case{19, 20}, Case{20, 20}}) {
    SCOPED_TRACE(one.asked);
    config.paths.checkpoint_dir = (folder / std::to_string(one.asked)).string();
    const RunFolder saved(config.paths.checkpoint_dir);
    Losses losses;
    TrainHooks hooks;
    hooks.on_step = [&](const StepReport& report) {
      (report.validation ? losses.validation : losses.train)[report.step] = report.loss;
      if (report.step == one.asked) request_stop(StopRequest::terminated);
    };
    Error error(ErrorKind::internal, "");
    capture([&] { error = error_of([&] { train(config, hooks); }); });
    EXPECT_EQ(error.kind(), ErrorKind::terminated);
    EXPECT_EQ(saved.latest_state()->step, one.stopped);
    EXPECT_TRUE(saved.latest_state()->owes_checks);
    EXPECT_FALSE(saved.latest_state()->finished);
    EXPECT_FALSE(losses.validation.contains(one.stopped));
    request_stop(StopRequest::none);
    run(config, &losses);
    EXPECT_EQ(losses.train, straight.train);
    EXPECT_EQ(losses.validation, straight.validation);
    EXPECT_TRUE(saved.latest_state()->finished);
    EXPECT_FALSE(saved.latest_state()->owes_checks);
    EXPECT_EQ(saved.load_best()->state.step,
              RunFolder(folder / "straight").load_best()->state.step);
    expect_same_bits(weights_in(saved.path()), weights_in(folder / "straight"));
  }
}

TEST(Train, DoesNothingWhenAlreadyFinished) {
  TestFolder folder;
  configure(1, false);
  run(small_run(folder / "run", 5));
  EXPECT_TRUE(run(small_run(folder / "run", 5)).already_finished);
}

TEST(Train, FreshStartsInANewFolder) {
  TestFolder folder;
  configure(1, false);
  run(small_run(folder / "run", 5));
  const TrainResult fresh = run(small_run(folder / "run", 5), nullptr, {.fresh = true});
  EXPECT_EQ(fresh.folder, (folder / "run-2").string());
  EXPECT_EQ(fresh.first_step, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "run" / "latest"));
}

TEST(Train, RefusesToGoOnWithOtherSettings) {
  TestFolder folder;
  configure(1, false);
  Config config = small_run(folder / "run", 5);
  run(config);
  config.training.seed = 9;
  const Error error = error_of([&] { run(config); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_NE(std::string(error.what()).find("seed=0"), std::string::npos);
  EXPECT_NE(std::string(error.what()).find("seed=9"), std::string::npos);
}

TEST(Train, RefusesWhatItCannotDo) {
  TestFolder folder;
  configure(4, false);
  Config config = small_run(folder / "run", 5);
  config.training.multi_gpu = true;
  config.data.batch_size = 3;
  EXPECT_STREQ(error_of([&] { run(config); }).what(),
               "data.batch_size is 3, less than the 4 replicas that share it");
  config = small_run(folder / "run", 5);
  config.data.train_data.reset();
  EXPECT_STREQ(error_of([&] { run(config); }).what(), "no training data was given");
  config.data.train_data = (folder / "nowhere.txt").string();
  EXPECT_EQ(error_of([&] { run(config); }).kind(), ErrorKind::io);
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));  // nothing half-begun
}

}  // namespace
}  // namespace tandem
