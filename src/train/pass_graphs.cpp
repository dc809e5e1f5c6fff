#include "train/pass_graphs.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "device/capture_gate.h"
#include "device/capture_work.h"
#include "device/logical_device.h"
#include "util/log.h"

namespace tandem {
namespace {

// A step that keeps meeting new shapes gains nothing from capturing them.
constexpr int64_t many_captures = 200;

// One launch for all of a type.
void copy_fields(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to) {
  std::map<at::ScalarType, std::pair<std::vector<at::Tensor>, std::vector<at::Tensor>>> alike;
  for (size_t i = 0; i < from.size(); ++i) {
    auto& [sources, targets] = alike[from[i].scalar_type()];
    sources.push_back(from[i]);
    targets.push_back(to[i]);
  }
  for (auto& [type, lists] : alike)
    at::_foreach_copy_(lists.second, lists.first, /*non_blocking=*/true);
}

}  // namespace

struct PassGraphs::Shape {
  int64_t seen = 0;
  bool replays = false;
  Batch inputs;
#ifdef TANDEM_WITH_CUDA
  std::vector<std::unique_ptr<at::cuda::CUDAGraph>> graphs;
#endif
  std::vector<at::Tensor> results;
};

struct PassGraphs::Pool {
#ifdef TANDEM_WITH_CUDA
  // One for all shapes: passes follow each other, and what one leaves behind is read before the
  // next begins.
  c10::cuda::MempoolId_t id = at::cuda::graph_pool_handle();
#endif
};

PassGraphs::PassGraphs(LogicalDevice& device, bool enabled)
    : device_(device), enabled_(enabled && device.kind() == DeviceKind::cuda) {}
PassGraphs::~PassGraphs() = default;

std::string PassGraphs::key(const Batch& batch, int64_t extra) const {
  std::string text = fmt::format("{} {} {}", batch.rows, batch.whole_rows, extra);
  for (const at::Tensor& field : batch.fields) {
    text += ' ';
    for (const int64_t size : field.sizes()) text += fmt::format("{}x", size);
  }
  return text;
}

PassGraphs::Shape& PassGraphs::begin(const Batch& batch, int64_t extra) {
  std::unique_ptr<Shape>& shape = shapes_[key(batch, extra)];
  if (!shape) shape = std::make_unique<Shape>();
  shape->replays = enabled_ && shape->seen > 0;
  if (!shape->replays) return *shape;
  at::NoGradGuard no_grad;
  Batch& own = shape->inputs;
  if (own.fields.empty())
    for (const at::Tensor& field : batch.fields) own.fields.push_back(at::empty_like(field));
  copy_fields(batch.fields, own.fields);
  own.index = batch.index;
  own.rows = batch.rows;
  own.whole_rows = batch.whole_rows;
  own.clips = batch.clips;
  own.sizes = batch.sizes;
  return *shape;
}

const Batch& PassGraphs::inputs(const Shape& shape, const Batch& batch) const {
  return shape.replays ? shape.inputs : batch;
}

bool PassGraphs::passed(const Shape& shape) const { return shape.seen > 0; }
bool PassGraphs::replays(const Shape& shape) const { return shape.replays; }

bool PassGraphs::captured([[maybe_unused]] const Shape& shape) const {
#ifdef TANDEM_WITH_CUDA
  return !shape.graphs.empty();
#else
  return false;
#endif
}

at::Tensor PassGraphs::run(Shape& shape, size_t piece, const std::function<at::Tensor()>& work) {
  if (!shape.replays) return work();
#ifdef TANDEM_WITH_CUDA
  if (shape.graphs.size() <= piece) {
    shape.graphs.resize(piece + 1);
    shape.results.resize(piece + 1);
  }
  auto& graph = shape.graphs[piece];
  if (!graph) {
    const auto alone = capturing_on(device_);
    if (!pool_) {
      pool_ = std::make_unique<Pool>();
      // What passes that ran as they were left behind is not reused by captured ones.
      c10::cuda::CUDACachingAllocator::emptyCache();
    }
    graph = capture_work(pool_->id, [&] { shape.results[piece] = work(); });
    if (++captures_ == many_captures) {
      log_warning(
          "the step was captured {} times and still meets new shapes; use fewer buckets "
          "(data.buckets)",
          captures_);
    }
  }
  graph->replay();
  return shape.results[piece];
#else
  (void)piece;
  return work();
#endif
}

void PassGraphs::end(Shape& shape) {
  // Once as it is, once captured.
  if (enabled_ && shape.seen < 2) ++unsettled_;
  ++shape.seen;
}

void PassGraphs::forget() {
  shapes_.clear();
  pool_.reset();
}

}  // namespace tandem
