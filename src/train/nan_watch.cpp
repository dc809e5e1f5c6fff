#include "train/nan_watch.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <sstream>
#include <vector>

#include "tandem/error.h"
#include "train/learner.h"

namespace tandem {
namespace {

bool holds_nan(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_floating_point() || tensor.numel() == 0) return false;
  return at::isnan(tensor).any().item<bool>();
}

// Nobody has written there yet, so anything may stand in it.
bool gives_raw_memory(std::string_view name) {
  const auto holds = [&](const char* part) { return name.find(part) != std::string_view::npos; };
  return holds("empty") || holds("::resize") || holds("::as_strided") || holds("::set_");
}

thread_local bool looking = false;  // our own operations are not looked at

}  // namespace

struct NanWatch::State {
  std::map<const void*, std::string> names;
  int64_t step = 0;
  std::string found;

  // An exception would not get out of a callback: what was found is kept for check().
  void look(const at::RecordFunction& function) {
    const std::string_view name = function.name();
    if (!found.empty() || gives_raw_memory(name)) return;
    for (const c10::IValue& output : function.outputs()) {
      if (!output.isTensor() || !holds_nan(output.toTensor())) continue;
      std::ostringstream shape;
      shape << output.toTensor().sizes();
      std::string parameter;
      for (const c10::IValue& input : function.inputs()) {
        if (!input.isTensor() || !input.toTensor().defined()) continue;
        const auto known = names.find(input.toTensor().const_data_ptr());
        if (known != names.end() && parameter.empty()) parameter = known->second;
      }
      found = fmt::format("step {}: the first number that is not one comes out of `{}`, shape {}{}",
                          step, name, shape.str(),
                          parameter.empty() ? "" : ", with the parameter `" + parameter + "`");
      return;
    }
  }
};

namespace {

// Backward operations run on threads of autograd's own, so every watch looks at every thread.
struct Watches {
  std::mutex mutex;
  std::vector<void*> states;
  at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
};
Watches& watches() {
  static Watches all;
  return all;
}

}  // namespace

NanWatch::NanWatch(Learner& learner, int64_t step) : state_(std::make_unique<State>()) {
  state_->step = step;
  for (const Phase& phase : learner.phases())
    for (const TrainedTensor& tensor : phase.tensors)
      state_->names[tensor.tensor->const_data_ptr()] = tensor.name;
  std::lock_guard lock(watches().mutex);
  watches().states.push_back(state_.get());
  if (watches().states.size() > 1) return;
  const auto look = [](const at::RecordFunction& function, at::ObserverContext*) {
    if (looking) return;
    looking = true;
    std::lock_guard all(watches().mutex);
    for (void* state : watches().states) static_cast<State*>(state)->look(function);
    looking = false;
  };
  watches().handle = at::addGlobalCallback(
      at::RecordFunctionCallback(
          [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> { return nullptr; },
          look)
          .needsInputs(true)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION}));
}

NanWatch::~NanWatch() {
  std::lock_guard lock(watches().mutex);
  std::erase(watches().states, state_.get());
  if (watches().states.empty()) at::removeCallback(watches().handle);
}

void NanWatch::check() const {
  std::lock_guard lock(watches().mutex);
  if (state_->found.empty()) return;
  throw Error(ErrorKind::numeric, state_->found)
      .hint("look at the clips of that batch, or lower --learning-rate");
}

}  // namespace tandem
