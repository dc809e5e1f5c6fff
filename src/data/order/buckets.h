// Clips of similar length share a bucket, and a bucket has one shape: batches then come in few
// shapes, which a captured step needs, and little of them is padding.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem {

struct ClipLength {
  double seconds = 0;
  int32_t tokens = 0;
};

struct Bucket {
  double seconds = 0;  // of its longest clip, rounded up
  int64_t tokens = 0;  // of its longest text, rounded up
  int64_t rows = 0;    // clips of a full batch
  std::vector<int64_t> clips;
};

struct BucketOptions {
  int64_t most = 8;           // buckets
  int64_t batch_size = 16;    // rows of a batch ...
  double batch_seconds = 0;   // ... or, when above 0, as many rows as fit into so many seconds
  double seconds_step = 0.5;  // shapes are multiples of these
  int64_t tokens_step = 8;
};

// The division into at most `most` buckets that pads the fewest seconds. No clips: no buckets.
std::vector<Bucket> make_buckets(const std::vector<ClipLength>& clips,
                                 const BucketOptions& options);

// Padded seconds over all seconds of the batches, 0..1.
double padding_share(const std::vector<Bucket>& buckets, const std::vector<ClipLength>& clips);

}  // namespace tandem
