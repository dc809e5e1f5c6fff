// Every operation on a GPU's tensors stands in a stream of its device: one in the default stream
// would run beside them, whatever they have not finished yet. Needs a GPU.
#include <ATen/record_function.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "device/recorded_inputs.h"
#include "device/registry.h"
#include "generate/music_engine.h"
#include "generate/speech_requests.h"
#include "gpu/in_child.h"
#include "gpu/lively_music.h"
#include "models/musicgen/musicgen.h"

namespace tandem {
namespace {

std::mutex g_mutex;
std::set<std::string> g_strays;

// Those that only look at a tensor from another side launch nothing.
bool launches(const std::string& name) {
  static const std::set<std::string> views = {
      "aten::select",    "aten::narrow",  "aten::slice",   "aten::view",      "aten::reshape",
      "aten::t",         "aten::permute", "aten::squeeze", "aten::unsqueeze", "aten::expand",
      "aten::transpose", "aten::detach",  "aten::alias",   "aten::as_strided"};
  return !views.contains(name);
}

std::unique_ptr<at::ObserverContext> note_strays(const at::RecordFunction& function) {
  if (!launches(function.name())) return nullptr;
  for (const c10::IValue& input : inputs_of(function)) {
    if (!input.isTensor() || !input.toTensor().defined() || !input.toTensor().is_cuda()) continue;
    const c10::DeviceIndex device = input.toTensor().get_device();
    if (c10::cuda::getCurrentCUDAStream(device) != c10::cuda::getDefaultCUDAStream(device))
      continue;
    const std::lock_guard lock(g_mutex);
    g_strays.insert(function.name());
  }
  return nullptr;
}

// What `work` and the threads it starts do, but nothing of the test's own.
std::set<std::string> strays_of(const std::function<void()>& work) {
  g_strays.clear();
  const auto handle = at::addGlobalCallback(at::RecordFunctionCallback(&note_strays)
                                                .needsInputs(true)
                                                .scopes({at::RecordScope::FUNCTION}));
  std::thread(work).join();
  at::removeCallback(handle);
  return g_strays;
}

LogicalDevice& first_gpu() {
  configure_devices({});
  return *DeviceRegistry::get().gpus().front();
}

}  // namespace

TEST(GpuStreams, AnOperationOutsideThemIsSeen) {
  IN_CHILD({
    first_gpu();
    const at::Tensor x = at::ones({4}, at::kCUDA);
    EXPECT_TRUE(strays_of([&] { at::exp(x); }).contains("aten::exp"));
  });
}

TEST(GpuStreams, SpeechStaysInThem) {
  IN_CHILD({
    LogicalDevice& device = first_gpu();
    const Xtts model = lively_model(xtts_preset("tiny"));
    for (const auto precision : {SpeechPrecision::fp32, SpeechPrecision::tf32,
                                 SpeechPrecision::fp16, SpeechPrecision::bf16}) {
      const auto strays = strays_of([&] { speak(model, device, 3, 4, 12, precision); });
      EXPECT_TRUE(strays.empty()) << fmt::format("{}", strays);
    }
  });
}

TEST(GpuStreams, MusicStaysInThem) {
  IN_CHILD({
    LogicalDevice& device = music_gpu();
    at::NoGradGuard no_gradients;
    Musicgen model = Musicgen::make("tiny", 1);
    const std::vector<MusicRequest> requests = {{.text_ids = {1, 2, 3}}, {.text_ids = {4, 5}}};
    const MusicOptions options{.sampling = {.greedy = true}, .new_tokens = 12, .longest_text = 8};
    for (const bool own : {true, false}) {
      const auto strays = strays_of([&] {
        const auto engine =
            own ? make_music_engine(model, device) : make_plain_music_engine(model, device, {});
        engine->generate(requests, options, [](size_t, MusicClip) {});
        engine->finish();
      });
      EXPECT_TRUE(strays.empty()) << fmt::format("{}", strays);
    }
  });
}

}  // namespace tandem
