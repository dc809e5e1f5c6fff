#include "train/stages/codebook.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "train/stages/counted_tensor.h"

namespace tandem {
namespace {

constexpr double lottery_slope = 16;    // the second smallest ticket weighs e^-16 of it, on average
constexpr double no_candidate = 1e-30;  // a weight below: nobody, or one too small to divide by

}  // namespace

Codebook::Codebook(const at::Tensor& embed, const at::Tensor& cluster_size,
                   const at::Tensor& embed_avg, const CodebookOptions& options)
    : options_(options), embed_(embed.detach().clone()) {
  const at::NoGradGuard no_grad;
  const int64_t width = embed.size(0), codes = embed.size(1);
  const bool counted = cluster_size.defined() && cluster_size.count_nonzero().item<int64_t>() > 0;
  if (counted || embed_avg.defined()) {
    cluster_size_ = cluster_size.detach().clone();
  } else {
    cluster_size_ = at::full({codes}, options.revive_every > 0 ? 0 : 1, embed.options());
  }
  embed_avg_ = embed_avg.defined() ? embed_avg.detach().clone() : embed_ * smoothed();
  const int64_t each = codes * (width + 1), parts = options.revive_every > 0 ? 2 : 1;
  all_sums_ = at::zeros({parts * each}, embed.options());
  const auto part = [&](int64_t place, at::Tensor& counts, at::Tensor& sums) {
    const at::Tensor mine = all_sums_.slice(0, place * each, (place + 1) * each);
    counts = mine.slice(0, 0, codes);
    sums = mine.slice(0, codes).view({codes, width});
  };
  part(0, counts_, vectors_);
  if (parts == 2) part(1, weights_, candidates_);
}

NamedTensors Codebook::buffers() {
  return {{"codebook.embed", embed_},
          {"codebook.cluster_size", cluster_size_},
          {"codebook.embed_avg", embed_avg_}};
}

at::Tensor Codebook::nearest(const at::Tensor& vectors, int64_t at_once) const {
  const at::NoGradGuard no_grad;
  const at::Tensor lengths = embed_.square().sum(0, /*keepdim=*/true);
  std::vector<at::Tensor> found;
  for (const at::Tensor& some : vectors.split(std::max<int64_t>(1, at_once / codes())))
    found.push_back(at::addmm(lengths, some, embed_, 1, -2).argmin(1));
  return found.size() == 1 ? found.front() : at::cat(found);
}

at::Tensor Codebook::lookup(const at::Tensor& codes) const {
  return embed_.t().index_select(0, codes);
}

at::Tensor Codebook::dead() const {
  const double limit = options_.dead_below / static_cast<double>(codes());
  return cluster_size_ <= cluster_size_.sum() * limit;
}

at::Tensor Codebook::smoothed() const {
  const at::Tensor total = cluster_size_.sum();
  const double added = options_.smoothing * static_cast<double>(codes());
  return (cluster_size_ + options_.smoothing) / (total + added) * total;
}

void Codebook::add(const Chosen& chosen, const StepValues& values) {
  const at::NoGradGuard no_grad;
  const at::Tensor real = chosen.real.to(embed_.scalar_type());
  const at::Tensor vectors = chosen.vectors.detach() * real.unsqueeze(1);
  // Adding up by index_put_ has one order on every device; index_add_ has none on a GPU.
  counts_.index_put_({chosen.codes}, real, /*accumulate=*/true);
  vectors_.index_put_({chosen.codes}, vectors, /*accumulate=*/true);
  if (!weights_.defined()) return;

  const at::Tensor are_dead = dead();
  const at::Tensor count = are_dead.sum();
  // Dead codes by rising index, then zeros; the living fall into the place behind the last.
  const at::Tensor place = at::where(are_dead, are_dead.cumsum(0) - 1, codes());
  const at::Tensor order = at::zeros({codes() + 1}, place.options())
                               .scatter_(0, place, at::arange(codes(), place.options()));
  const at::Tensor draw =
      counted_draw(values.run_seed, "codebook revival", chosen.tickets, values.step);
  const at::Tensor ticket =
      counted_units(values.run_seed, "codebook ticket", chosen.tickets, values.step);
  const at::Tensor code = order.index_select(0, draw.remainder(count.clamp_min(1)));
  const at::Tensor load = (chosen.whole / count.clamp_min(1)).clamp_min(1);
  const at::Tensor weight = (ticket * load * -lottery_slope).exp() * real * (count > 0);
  const at::Tensor typed = weight.to(embed_.scalar_type());
  weights_.index_put_({code}, typed, /*accumulate=*/true);
  candidates_.index_put_({code}, vectors * typed.unsqueeze(1), /*accumulate=*/true);
}

void Codebook::move(const at::Tensor& good, const at::Tensor& step) {
  at::Tensor gain = at::full_like(cluster_size_.select(0, 0), 1 - options_.decay);
  if (options_.warms_up) gain = at::maximum(gain, 9 / (step.to(gain.scalar_type()) + 10));
  gain = at::where(good, gain, 0);
  cluster_size_.mul_(1 - gain).add_(counts_ * gain);
  embed_avg_.mul_(1 - gain).add_(at::where(good, vectors_.t(), 0) * gain);
  at::Tensor moved = good;
  if (options_.keeps_unused) moved = good.logical_and(cluster_size_ > 100 * options_.smoothing);
  embed_.copy_(at::where(moved, embed_avg_ / smoothed(), embed_));
}

void Codebook::revive(const at::Tensor& replaced) {
  const at::Tensor candidate = (candidates_ / weights_.clamp_min(no_candidate).unsqueeze(1)).t();
  const at::Tensor size = counts_.sum() * (options_.trial / static_cast<double>(codes()));
  cluster_size_.copy_(at::where(replaced, size, cluster_size_));
  embed_avg_.copy_(at::where(replaced, candidate * size, embed_avg_));
  embed_.copy_(at::where(replaced, candidate, embed_));
}

void Codebook::update(const StepValues& values, const at::Tensor& taken) {
  const at::NoGradGuard no_grad;
  const at::Tensor good =
      all_sums_.sum().isfinite().logical_and(counts_.sum() > 0).logical_and(taken > 0);
  const at::Tensor were_dead = dead();
  move(good, values.step);
  if (weights_.defined()) {
    const int64_t every = options_.revive_every;
    const at::Tensor due =
        values.step.remainder(every).eq(0).logical_or(values.step <= every).logical_and(good);
    revive(were_dead.logical_and(weights_ > no_candidate).logical_and(due));
  }
  all_sums_.zero_();
}

at::Tensor select_codes(const at::Tensor& usage, int64_t keep) {
  const at::Tensor order = std::get<1>(usage.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true));
  return std::get<0>(order.slice(0, 0, keep).sort());
}

}  // namespace tandem
