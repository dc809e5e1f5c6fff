#include "data/order/buckets.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace tandem {
namespace {

// Upper edges, in steps. Lengths are counted by step; cost[k][i] is the least padding of the first
// i lengths in k buckets. A few hundred lengths, so the cubic search takes no time.
std::vector<int64_t> best_edges(const std::map<int64_t, int64_t>& counts, int64_t most) {
  std::vector<int64_t> lengths, below{0}, weight{0};  // running sums: clips, clips times steps
  for (const auto& [length, count] : counts) {
    lengths.push_back(length);
    below.push_back(below.back() + count);
    weight.push_back(weight.back() + count * length);
  }
  const size_t n = lengths.size(), k_most = std::min<size_t>(static_cast<size_t>(most), n);
  constexpr int64_t never = std::numeric_limits<int64_t>::max() / 2;
  std::vector<std::vector<int64_t>> cost(k_most + 1, std::vector<int64_t>(n + 1, never));
  std::vector<std::vector<size_t>> from(k_most + 1, std::vector<size_t>(n + 1, 0));
  cost[0][0] = 0;
  for (size_t k = 1; k <= k_most; ++k) {
    for (size_t i = 1; i <= n; ++i) {
      for (size_t j = k - 1; j < i; ++j) {
        if (cost[k - 1][j] >= never) continue;
        const int64_t padding = lengths[i - 1] * (below[i] - below[j]) - (weight[i] - weight[j]);
        if (cost[k - 1][j] + padding < cost[k][i]) {
          cost[k][i] = cost[k - 1][j] + padding;
          from[k][i] = j;
        }
      }
    }
  }
  size_t k = k_most;  // more buckets never pad more
  std::vector<int64_t> edges;
  for (size_t i = n; i > 0; i = from[k--][i]) edges.push_back(lengths[i - 1]);
  std::reverse(edges.begin(), edges.end());
  return edges;
}

}  // namespace

std::vector<Bucket> make_buckets(const std::vector<ClipLength>& clips,
                                 const BucketOptions& options) {
  const auto steps_of = [&](const ClipLength& clip) {
    return std::max<int64_t>(1,
                             std::llround(std::ceil(clip.seconds / options.seconds_step - 1e-9)));
  };
  std::map<int64_t, int64_t> counts;
  for (const ClipLength& clip : clips) ++counts[steps_of(clip)];
  if (counts.empty()) return {};
  const std::vector<int64_t> edges = best_edges(counts, options.most);

  std::vector<Bucket> buckets(edges.size());
  for (size_t b = 0; b < edges.size(); ++b)
    buckets[b].seconds = static_cast<double>(edges[b]) * options.seconds_step;
  for (size_t i = 0; i < clips.size(); ++i) {
    const auto edge = std::lower_bound(edges.begin(), edges.end(), steps_of(clips[i]));
    Bucket& bucket = buckets[static_cast<size_t>(edge - edges.begin())];
    bucket.clips.push_back(static_cast<int64_t>(i));
    bucket.tokens = std::max<int64_t>(bucket.tokens, clips[i].tokens);
  }
  for (Bucket& bucket : buckets) {
    const int64_t step = options.tokens_step;
    bucket.tokens = std::max(step, (bucket.tokens + step - 1) / step * step);
    bucket.rows =
        options.batch_seconds > 0
            ? std::max<int64_t>(1, static_cast<int64_t>(options.batch_seconds / bucket.seconds))
            : options.batch_size;
  }
  return buckets;
}

double padding_share(const std::vector<Bucket>& buckets, const std::vector<ClipLength>& clips) {
  double padded = 0, whole = 0;
  for (const Bucket& bucket : buckets) {
    for (const int64_t clip : bucket.clips) {
      whole += bucket.seconds;
      padded += bucket.seconds - clips[static_cast<size_t>(clip)].seconds;
    }
  }
  return whole > 0 ? padded / whole : 0;
}

}  // namespace tandem
