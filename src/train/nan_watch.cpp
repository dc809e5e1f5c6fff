#include "train/nan_watch.h"

#include <ATen/ATen.h>
#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <sstream>

#include "device/recorded_inputs.h"
#include "train/learner.h"

namespace tandem {
namespace {

// LibTorch's threads of a backward pass are given what was known where it was called.
constexpr auto kind = c10::DebugInfoKind::TEST_INFO;

bool holds_nan(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_floating_point() || tensor.numel() == 0) return false;
  return at::isnan(tensor).any().item<bool>();
}

// Nobody has written there yet, so anything may stand in it.
bool gives_raw_memory(std::string_view name) {
  const auto holds = [&](const char* part) { return name.find(part) != std::string_view::npos; };
  return holds("empty") || holds("::resize") || holds("::set_") || holds("::as_strided");
}

// Whether it only shows what stood there already, which may be raw memory too.
bool only_views(const at::RecordFunction& function) {
  const auto schema = function.operator_schema();
  if (!schema || schema->returns().empty()) return false;
  const auto* alias = schema->returns()[0].alias_info();
  return alias && !alias->isWrite();
}

// The tensors an operation is called with, kept until its result is there.
struct CalledWith : at::ObserverContext {
  std::vector<const void*> places;
};

thread_local bool g_looking = false;  // our own operations are not looked at
struct Looking {
  Looking() { g_looking = true; }
  ~Looking() { g_looking = false; }
};

std::unique_ptr<at::ObserverContext> note_inputs(const at::RecordFunction& function) {
  if (g_looking) return nullptr;
  auto called = std::make_unique<CalledWith>();
  for (const c10::IValue& input : inputs_of(function))
    if (input.isTensor() && input.toTensor().defined() && input.toTensor().has_storage())
      called->places.push_back(input.toTensor().const_data_ptr());
  return called;
}

}  // namespace

struct NanWatch::State : c10::DebugInfoBase {
  std::mutex mutex;
  std::map<const void*, std::string> names;
  int64_t step = 0;
  std::optional<Found> found;

  // An exception would not get out of a callback: what was found is kept for check().
  void look(const at::RecordFunction& function, const CalledWith& called) {
    const std::lock_guard lock(mutex);
    for (const c10::IValue& output : function.outputs()) {
      if (found) return;
      if (!output.isTensor() || !holds_nan(output.toTensor())) continue;
      std::ostringstream shape;
      shape << output.toTensor().sizes();
      const auto known = std::ranges::find_if(
          called.places, [&](const void* place) { return names.contains(place); });
      found = {
          Clock::now(),
          fmt::format("step {}: the first number that is not one comes out of `{}`, shape {}{}",
                      step, function.name(), shape.str(),
                      known == called.places.end()
                          ? ""
                          : fmt::format(", with the parameter `{}`", names.at(*known)))};
    }
  }
};

NanWatch::NanWatch(const std::vector<Phase>& phases, int64_t step)
    : state_(std::make_shared<State>()),
      known_here_(std::make_unique<c10::DebugInfoGuard>(kind, state_)) {
  state_->step = step;
  for (const Phase& phase : phases)
    for (const TrainedTensor& tensor : phase.tensors)
      state_->names[tensor.tensor->const_data_ptr()] = tensor.name;
  const auto look = [](const at::RecordFunction& function, at::ObserverContext* context) {
    auto* state = static_cast<State*>(c10::ThreadLocalDebugInfo::get(kind));
    if (!state || !context || gives_raw_memory(function.name()) || only_views(function)) return;
    const Looking now;
    state->look(function, *static_cast<CalledWith*>(context));
  };
  callback_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&note_inputs, look)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
}

NanWatch::~NanWatch() { at::removeCallback(callback_); }

Error NanWatch::error(const Found& found) {
  return Error(ErrorKind::numeric, found.sentence)
      .hint("look at the clips of that batch, or lower --learning-rate");
}

void NanWatch::check() const {
  if (const auto first = found()) throw error(*first);
}

std::optional<NanWatch::Found> NanWatch::found() const {
  const std::lock_guard lock(state_->mutex);
  return state_->found;
}

}  // namespace tandem
