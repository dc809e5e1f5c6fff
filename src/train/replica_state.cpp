// What of a replica goes into a checkpoint, and back.
#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "device/device_scope.h"
#include "train/replica.h"

namespace tandem {
namespace {

void copy_to_host(const NamedTensors& from, NamedTensors& to) {
  if (to.empty()) {
    for (const auto& [name, tensor] : from) {
      to.emplace_back(
          name, at::empty(tensor.sizes(),
                          tensor.options().device(at::kCPU).requires_grad(false).pinned_memory(
                              tensor.is_cuda())));
    }
  }
  for (size_t i = 0; i < from.size(); ++i) to[i].second.copy_(from[i].second, true);
}

void append(NamedTensors& list, const NamedTensors& more) {
  list.insert(list.end(), more.begin(), more.end());
}

}  // namespace

// Counters of the optimizers and the loss scale.
NamedTensors Replica::rest() {
  NamedTensors list;
  for (size_t i = 0; i < phases_.size(); ++i)
    append(list, phases_[i].optimizer->state(fmt::format("phase.{}.", i)));
  if (scale_) append(list, scale_->state());
  return list;
}

void Replica::copy_to(Snapshot& snapshot) {
  DeviceScope scope(device_);
  at::NoGradGuard no_grad;
  snapshot.phases.resize(phases_.size());
  for (size_t i = 0; i < phases_.size(); ++i) phases_[i].store->copy_to(snapshot.phases[i]);
  copy_to_host(learner_->buffers(), snapshot.buffers);
  copy_to_host(rest(), snapshot.rest);
}

Checkpoint Replica::checkpoint(const Snapshot& snapshot) const {
  Checkpoint made;
  for (size_t i = 0; i < phases_.size(); ++i) {
    append(made.weights, phases_[i].store->weights(snapshot.phases[i]));
    append(made.average, phases_[i].store->average(snapshot.phases[i]));
    append(made.optimizer, phases_[i].store->moments(snapshot.phases[i]));
  }
  made.buffers = snapshot.buffers;
  append(made.optimizer, snapshot.rest);
  return made;
}

void Replica::load(const Checkpoint& checkpoint) {
  DeviceScope scope(device_);
  const auto of = [](const NamedTensors& all, const ParameterStore& store,
                     const std::vector<std::string>& suffixes) {
    std::set<std::string> wanted;
    for (const TrainedView& view : store.views())
      for (const std::string& suffix : suffixes) wanted.insert(view.name + suffix);
    NamedTensors found;
    for (const auto& entry : all)
      if (wanted.contains(entry.first)) found.push_back(entry);
    return found;
  };
  for (PhaseParts& phase : phases_) {
    const ParameterStore& store = *phase.store;
    phase.store->load(of(checkpoint.weights, store, {""}),
                      of(checkpoint.optimizer, store, {".mean", ".square"}),
                      of(checkpoint.average, store, {""}), "the checkpoint");
  }
  copy_by_name(checkpoint.buffers, learner_->buffers(), "buffers.safetensors");
  NamedTensors wanted = rest();
  // A run in another precision had no scale; it begins at its first one.
  const auto is_there = [&](const std::string& name) {
    return std::ranges::any_of(checkpoint.optimizer,
                               [&](const auto& entry) { return entry.first == name; });
  };
  std::erase_if(wanted, [&](const auto& entry) {
    return entry.first.starts_with("loss_scale") && !is_there(entry.first);
  });
  copy_by_name(checkpoint.optimizer, wanted, "optimizer.safetensors");
}

}  // namespace tandem
