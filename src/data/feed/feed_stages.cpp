// What the feed's threads do: prepare on the data device, copy to each model's.
#include "data/feed/feed.h"
#include "data/order/batch_order.h"
#include "device/capture_gate.h"
#include "device/device_scope.h"
#include "device/logical_device.h"

namespace tandem {

void Feed::prepare_all() {
  try {
    while (std::unique_ptr<HostBatch> host = loader_->take()) {
      RingSlot* slot = ring_->acquire();
      if (!slot) return;
      prepare_one(*slot, std::move(host));
      slot->readers = static_cast<int>(lanes_.size());
      for (auto& lane : lanes_) {
        if (!lane->prepared->put(slot)) return;
      }
    }
    for (auto& lane : lanes_) lane->prepared->close();
  } catch (...) {
    fail(std::current_exception());
  }
}

void Feed::prepare_one(RingSlot& slot, std::unique_ptr<HostBatch> host) {
  Stream& stream =
      options_.overlap ? data_device_.preparation_stream() : data_device_.compute_stream();
  auto launching = launching_on(data_device_);
  for (const Event& event : slot.released) stream.wait(event);
  slot.released.clear();
  stream.run([this, &slot, read = host.get()] {
    at::NoGradGuard no_grad;
    const Batch made = maker_.prepare(*read);
    at::TensorOptions where = at::TensorOptions().device(data_device_.torch_device());
    if (!options_.prefetch_to_device && data_device_.kind() == DeviceKind::cuda)
      where = at::TensorOptions().device(at::kCPU).pinned_memory(options_.pin_memory);
    slot.batch = {.index = made.index, .rows = made.rows, .clips = made.clips, .sizes = made.sizes};
    for (size_t i = 0; i < made.fields.size(); ++i) {
      at::Tensor view =
          slot_view(slot.buffers, i, made.fields[i], made.fields[i].size(0), where, largest(i));
      view.copy_(made.fields[i], /*non_blocking=*/true);
      slot.batch.fields.push_back(std::move(view));
    }
  });
  slot.ready = stream.record();
  if (launching) launching.unlock();
  // What is said of a batch (its index, its shapes) is read by other threads: on a simulated device
  // it is there only when the work has run.
  if (data_device_.kind() != DeviceKind::cuda) stream.synchronize();
  loader_->give_back(std::move(host), slot.ready);
}

void Feed::move_all(int rank) {
  Lane& lane = this->lane(rank);
  try {
    while (const std::optional<RingSlot*> from = lane.prepared->get()) {
      RingSlot* to = move_one(rank, *from, lane.device->copy_stream());
      if (!to || !lane.moved->put(to)) return;
    }
    lane.moved->close();
  } catch (...) {
    fail(std::current_exception());
  }
}

// Copies this model's part of `from` into a slot of its own ring and releases `from`.
RingSlot* Feed::move_one(int rank, RingSlot* from, Stream& stream) {
  Lane& lane = this->lane(rank);
  RingSlot* to = lane.ring->acquire();
  if (!to) return nullptr;
  const Batch source = part(from->batch, rank);
  to->batch = source;
  to->batch.fields.clear();
  // The other device's is another GPU or a share of this one.
  const auto launching = launching_on(*lane.device);
  for (const Event& event : to->released) stream.wait(event);
  Event read = from->ready;
  std::vector<at::Tensor> fields = source.fields;
  const bool staged = lane.staged && options_.prefetch_to_device;
  if (staged) {
    Stream& away = data_device_.copy_stream();
    away.wait(from->ready);
    // What was staged here before may still be on its way to the model's device.
    for (const Event& event : to->released) away.wait(event);
    const bool real = data_device_.kind() == DeviceKind::cuda;
    away.run([this, &fields, to, real] {
      const auto pinned = at::TensorOptions().device(at::kCPU).pinned_memory(real);
      for (size_t i = 0; i < fields.size(); ++i) {
        const at::Tensor stage =
            slot_view(to->staging, i, fields[i], fields[i].size(0), pinned, largest(i));
        stage.copy_(fields[i], /*non_blocking=*/true);
        fields[i] = stage;
      }
    });
    read = away.record();
    if (!real) away.synchronize();  // `fields` names the staged copies from here on
  }
  to->released.clear();
  stream.wait(read);
  stream.run([this, &lane, to, fields] {
    at::NoGradGuard no_grad;
    const auto where = at::TensorOptions().device(lane.device->torch_device());
    for (size_t i = 0; i < fields.size(); ++i) {
      at::Tensor view = slot_view(to->buffers, i, fields[i], fields[i].size(0), where, largest(i));
      view.copy_(fields[i], /*non_blocking=*/true);
      to->batch.fields.push_back(std::move(view));
    }
  });
  to->ready = stream.record();
  to->readers = 1;
  if (lane.device->kind() != DeviceKind::cuda) stream.synchronize();
  release_prepared(from, staged ? read : to->ready);
  return to;
}

void Feed::release_prepared(RingSlot* slot, Event read) {
  ring_->release(slot, std::move(read), [&] {
    if (!options_.poison) return;
    Stream& stream = data_device_.preparation_stream();
    for (const Event& event : slot->released) {
      stream.wait(event);
      // The host fills its own memory at once, whatever a stream still reads of it.
      if (!options_.prefetch_to_device) event.synchronize();
    }
    stream.run([slot] { poison(*slot); });
    slot->released = {stream.record()};
  });
}

void Feed::give_back(int rank, RingSlot* slot) {
  Lane& lane = this->lane(rank);
  const Event read = lane.device->compute_stream().record();
  if (lane.way == Way::direct) return release_prepared(slot, read);
  lane.ring->release(slot, read, [&] {
    if (!options_.poison) return;
    Stream& stream = lane.device->copy_stream();
    stream.wait(read);
    stream.run([slot] { poison(*slot); });
    slot->released = {stream.record()};
  });
}

}  // namespace tandem
