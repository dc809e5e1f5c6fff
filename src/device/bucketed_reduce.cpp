#include <ATen/ATen.h>

#include "device/communicator.h"

namespace tandem {
namespace {

struct Bucket {
  std::vector<at::Tensor> members;
  at::Tensor flat;
  std::shared_ptr<Work> work;
};

std::vector<Bucket> pack(const std::vector<at::Tensor>& tensors, size_t bucket_bytes) {
  std::vector<Bucket> buckets;
  size_t filled = 0;
  for (const at::Tensor& tensor : tensors) {
    const bool same_type =
        !buckets.empty() && buckets.back().members[0].scalar_type() == tensor.scalar_type();
    if (!same_type || filled + tensor.nbytes() > bucket_bytes) {
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().members.push_back(tensor);
    filled += tensor.nbytes();
  }
  return buckets;
}

}  // namespace

void Communicator::all_reduce_bucketed(const std::vector<at::Tensor>& tensors, Reduce op,
                                       size_t bucket_bytes) {
  at::NoGradGuard no_grad;
  std::vector<Bucket> buckets = pack(tensors, bucket_bytes);
  for (Bucket& bucket : buckets) {
    std::vector<at::Tensor> flat;
    for (const at::Tensor& member : bucket.members) flat.push_back(member.reshape({-1}));
    bucket.flat = at::cat(flat);
    bucket.work = all_reduce(bucket.flat, op);
  }
  for (Bucket& bucket : buckets) {
    bucket.work->wait();
    int64_t offset = 0;
    for (at::Tensor& member : bucket.members) {
      member.copy_(bucket.flat.narrow(0, offset, member.numel()).view(member.sizes()));
      offset += member.numel();
    }
  }
}

}  // namespace tandem
