#include "train/gradient_reducer.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace tandem {

struct GradientReducer::Hook final : torch::autograd::PostAccumulateGradHook {
  Hook(GradientReducer& owner, size_t tensor) : reducer(owner), index(tensor) {}
  void operator()(const torch::autograd::Variable&) override { reducer.note_final(index); }
  GradientReducer& reducer;
  size_t index;
};

GradientReducer::GradientReducer(const ParameterStore& store, Communicator& group,
                                 size_t bucket_bytes)
    : store_(store), group_(group), bucket_of_(store.views().size()) {
  const auto& views = store.views();
  for (size_t end = views.size(); end > 0;) {
    size_t first = end, bytes = 0;
    while (first > 0 && (first == end || bytes < bucket_bytes))
      bytes += views[--first].gradient.nbytes();
    for (size_t i = first; i < end; ++i) bucket_of_[i] = buckets_.size();
    buckets_.push_back({first, end, 0, {}});
    end = first;
  }
  for (size_t i = 0; i < views.size(); ++i) {
    if (!views[i].weight.requires_grad()) continue;
    torch::autograd::impl::set_post_acc_grad_hooks(views[i].weight,
                                                   std::make_unique<Hook>(*this, i));
  }
}

GradientReducer::~GradientReducer() {
  for (const TrainedView& view : store_.views()) {
    if (view.weight.requires_grad())
      torch::autograd::impl::set_post_acc_grad_hooks(view.weight, nullptr);
  }
}

void GradientReducer::watch() {
  for (Bucket& bucket : buckets_) bucket.waiting = bucket.end - bucket.first;
  watching_ = true;
}

void GradientReducer::note_final(size_t tensor) {
  if (!watching_) return;
  Bucket& bucket = buckets_[bucket_of_[tensor]];
  if (bucket.waiting > 0) --bucket.waiting;
  while (next_ < buckets_.size() && buckets_[next_].waiting == 0) {
    ++early_;
    launch(buckets_[next_++]);
  }
}

void GradientReducer::final_from(size_t first) {
  while (next_ < buckets_.size() && buckets_[next_].first >= first) {
    ++early_;
    launch(buckets_[next_++]);
  }
}

void GradientReducer::launch(Bucket& bucket) {
  for (const at::Tensor& gradients : store_.gradients(bucket.first, bucket.end))
    bucket.works.push_back(group_.all_reduce(gradients, Reduce::sum));
}

void GradientReducer::finish() {
  watching_ = false;
  while (next_ < buckets_.size()) launch(buckets_[next_++]);
  for (Bucket& bucket : buckets_) {
    for (const auto& work : bucket.works) work->wait();
    bucket.works.clear();
  }
  next_ = 0;
}

bool GradientReducer::break_off() {
  watching_ = false;
  if (next_ == 0) return false;
  if (next_ < buckets_.size()) store_.spoil_gradients(buckets_[next_].end);
  finish();
  return true;
}

}  // namespace tandem
