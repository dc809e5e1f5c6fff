#include "train/parameter_store.h"

#include <ATen/ATen.h>

#include <cmath>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "train/optimizer.h"

namespace tandem {
namespace {

int64_t padded(int64_t count) { return (count + adamw_chunk - 1) / adamw_chunk * adamw_chunk; }

at::Tensor on_host(const at::Tensor& like) {
  if (!like.defined()) return {};
  return at::empty(like.sizes(), like.options().device(at::kCPU).pinned_memory(like.is_cuda()));
}

}  // namespace

ParameterStore::ParameterStore(const std::vector<TrainedTensor>& tensors, bool average,
                               std::optional<at::Device> where, bool half_gradients)
    : average_(average) {
  at::NoGradGuard no_grad;
  constexpr size_t whole = 0, split = 1, half = 2;
  int64_t sizes[3] = {0, 0, 0};
  for (const TrainedTensor& tensor : tensors) {
    const bool halves = half_gradients && tensor.half_gradient;
    const size_t arena = !tensor.split ? whole : halves ? half : split;
    places_.push_back({arena, sizes[arena], tensor.tensor->numel()});
    sizes[arena] += padded(tensor.tensor->numel());
    count_ += tensor.tensor->numel();
  }
  at::TensorOptions options = at::TensorOptions().dtype(at::kFloat);
  const LogicalDevice* scope = DeviceScope::current();
  if (where || scope) options = options.device(where ? *where : scope->torch_device());
  for (const size_t arena : {whole, split, half}) {
    const int64_t size = sizes[arena];
    AdamWBuffers buffers;
    buffers.weight = at::zeros({size}, options.dtype(arena == whole ? at::kFloat : at::kBFloat16));
    if (arena != whole) buffers.low = at::zeros({size}, options.dtype(at::kShort));
    buffers.gradient = at::zeros({size}, options.dtype(arena == half ? at::kBFloat16 : at::kFloat));
    buffers.mean = at::zeros({size}, options);
    buffers.square = at::zeros({size}, options);
    if (average) buffers.average = at::zeros({size}, options);
    at::Tensor decays = at::zeros({size / adamw_chunk}, at::kByte);
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (places_[i].arena != arena || !tensors[i].decays) continue;
      decays.narrow(0, places_[i].offset / adamw_chunk, padded(places_[i].count) / adamw_chunk)
          .fill_(1);
    }
    buffers.decays = decays.to(options.device());
    arenas_.push_back(buffers);
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    at::Tensor& tensor = *tensors[i].tensor;
    const AdamWBuffers& buffers = arenas_[places_[i].arena];
    const at::IntArrayRef shape = tensor.sizes();
    const at::Tensor values = tensor.detach().to(options).reshape({-1});
    at::Tensor weight = slice(buffers.weight, i);
    if (tensors[i].split) {
      at::Tensor low = slice(buffers.low, i);
      split_float(values, weight, low);
    } else {
      weight.copy_(values);
    }
    if (average) slice(buffers.average, i).copy_(values);
    const at::Tensor gradient = slice(buffers.gradient, i).view(shape);
    at::Tensor parameter = weight.view(shape).detach();
    if (!tensors[i].split) {
      parameter.requires_grad_(true);
      parameter.mutable_grad() = gradient;
    }
    tensor = parameter;
    views_.push_back({tensors[i].name, parameter, gradient});
  }
}

at::Tensor ParameterStore::slice(const at::Tensor& flat, size_t index) const {
  return flat.narrow(0, places_[index].offset, places_[index].count);
}

void ParameterStore::spoil_gradients(size_t end) const {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < end; ++i) at::Tensor(views_[i].gradient).fill_(NAN);
}

std::vector<at::Tensor> ParameterStore::gradients(size_t first, size_t end) const {
  std::vector<at::Tensor> found;
  for (size_t arena = 0; arena < arenas_.size(); ++arena) {
    int64_t from = -1, to = -1;
    for (size_t i = first; i < end; ++i) {
      if (places_[i].arena != arena) continue;
      if (from < 0) from = places_[i].offset;
      to = places_[i].offset + padded(places_[i].count);
    }
    if (from >= 0) found.push_back(arenas_[arena].gradient.narrow(0, from, to - from));
  }
  return found;
}

void ParameterStore::copy_to(Snapshot& snapshot) const {
  at::NoGradGuard no_grad;
  snapshot.arenas.resize(arenas_.size());
  for (size_t i = 0; i < arenas_.size(); ++i) {
    for (const auto member : {&AdamWBuffers::weight, &AdamWBuffers::low, &AdamWBuffers::mean,
                              &AdamWBuffers::square, &AdamWBuffers::average}) {
      const at::Tensor& from = arenas_[i].*member;
      at::Tensor& to = snapshot.arenas[i].*member;
      if (!from.defined()) continue;
      if (!to.defined()) to = on_host(from);
      to.copy_(from, /*non_blocking=*/true);
    }
  }
}

NamedTensors ParameterStore::named(const Snapshot& snapshot, at::Tensor AdamWBuffers::*member,
                                   const std::string& suffix) const {
  NamedTensors list;
  for (size_t i = 0; i < places_.size(); ++i) {
    const AdamWBuffers& arena = snapshot.arenas[places_[i].arena];
    at::Tensor flat = slice(arena.*member, i);
    if (member == &AdamWBuffers::weight && arena.low.defined())
      flat = join_float(flat, slice(arena.low, i));
    list.emplace_back(views_[i].name + suffix, flat.view(views_[i].weight.sizes()));
  }
  return list;
}

NamedTensors ParameterStore::weights(const Snapshot& snapshot) const {
  return named(snapshot, &AdamWBuffers::weight, "");
}
NamedTensors ParameterStore::average(const Snapshot& snapshot) const {
  return average_ ? named(snapshot, &AdamWBuffers::average, "") : NamedTensors{};
}
NamedTensors ParameterStore::moments(const Snapshot& snapshot) const {
  NamedTensors list = named(snapshot, &AdamWBuffers::mean, ".mean");
  const NamedTensors squares = named(snapshot, &AdamWBuffers::square, ".square");
  list.insert(list.end(), squares.begin(), squares.end());
  return list;
}

void ParameterStore::load(const NamedTensors& weights, const NamedTensors& moments,
                          const NamedTensors& average, const std::string& what) {
  at::NoGradGuard no_grad;
  NamedTensors into, moments_into, average_into;
  for (size_t i = 0; i < places_.size(); ++i) {
    const AdamWBuffers& arena = arenas_[places_[i].arena];
    const auto shaped = [&](const at::Tensor& flat) {
      return slice(flat, i).view(views_[i].weight.sizes());
    };
    // Split weights come in whole and are taken apart below.
    into.emplace_back(views_[i].name, arena.low.defined()
                                          ? at::empty(views_[i].weight.sizes(), at::kFloat)
                                          : shaped(arena.weight));
    moments_into.emplace_back(views_[i].name + ".mean", shaped(arena.mean));
    moments_into.emplace_back(views_[i].name + ".square", shaped(arena.square));
    if (average_) average_into.emplace_back(views_[i].name, shaped(arena.average));
  }
  copy_by_name(weights, into, what);
  for (size_t i = 0; i < places_.size(); ++i) {
    const AdamWBuffers& arena = arenas_[places_[i].arena];
    if (!arena.low.defined()) continue;
    at::Tensor high = slice(arena.weight, i), low = slice(arena.low, i);
    split_float(into[i].second.reshape({-1}).to(high.device()), high, low);
  }
  copy_by_name(moments, moments_into, what);
  if (average_) copy_by_name(average.empty() ? weights : average, average_into, what);
}

void ParameterStore::swap_average() {
  at::NoGradGuard no_grad;
  for (AdamWBuffers& arena : arenas_) {
    if (!arena.average.defined() || arena.average.numel() == 0) continue;
    const at::Tensor now =
        arena.low.defined() ? join_float(arena.weight, arena.low) : arena.weight.clone();
    if (arena.low.defined()) {
      split_float(arena.average, arena.weight, arena.low);
    } else {
      arena.weight.copy_(arena.average);
    }
    arena.average.copy_(now);
  }
}

}  // namespace tandem
