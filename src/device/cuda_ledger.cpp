// LibTorch's CUDA caching allocator behind one that charges the logical device of the open scope.
// Every call goes through to the caching allocator; only allocate, free and record-stream do more.
#include "device/cuda_ledger.h"

#ifdef TANDEM_WITH_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include "device/charged_blocks.h"
#include "device/device_scope.h"
#include "device/logical_device.h"

namespace tandem {
namespace {

namespace cc = c10::cuda::CUDACachingAllocator;

class ChargingCudaAllocator final : public cc::CUDAAllocator {
 public:
  explicit ChargingCudaAllocator(cc::CUDAAllocator* inner) : inner_(inner) { g_inner = inner; }

  c10::DataPtr allocate(size_t bytes) override {
    LogicalDevice* device = DeviceScope::current();
    if (!device || device->kind() != DeviceKind::cuda || bytes == 0) return inner_->allocate(bytes);
    return allocate_charged(*inner_, device->memory(), bytes, &free_block);
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }

  // The caching allocator only trusts pointers that carry its own deleter: lend it one that does.
  void recordStream(const c10::DataPtr& data, c10::cuda::CUDAStream stream) override {
    if (data.get() == nullptr) return;
    c10::DataPtr lent(data.get(), data.get(), inner_->raw_deleter(), data.device());
    inner_->recordStream(lent, stream);
    lent.release_context();
  }

  void copy_data(void* to, const void* from, size_t bytes) const override {
    inner_->copy_data(to, from, bytes);
  }
  bool initialized() override { return inner_->initialized(); }
  void emptyCache(c10::MempoolId_t pool) override { inner_->emptyCache(pool); }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex d) override {
    return inner_->getDeviceStats(d);
  }
  void resetAccumulatedStats(c10::DeviceIndex d) override { inner_->resetAccumulatedStats(d); }
  void resetPeakStats(c10::DeviceIndex d) override { inner_->resetPeakStats(d); }
  void* raw_alloc(size_t n) override { return inner_->raw_alloc(n); }
  void* raw_alloc_with_stream(size_t n, cudaStream_t s) override {
    return inner_->raw_alloc_with_stream(n, s);
  }
  void raw_delete(void* p) override { inner_->raw_delete(p); }
  void init(int count) override { inner_->init(count); }
  double getMemoryFraction(c10::DeviceIndex d) override { return inner_->getMemoryFraction(d); }
  void setMemoryFraction(double f, c10::DeviceIndex d) override { inner_->setMemoryFraction(f, d); }
  std::vector<cc::StreamSegmentSize> getExpandableSegmentSizes(c10::DeviceIndex d) override {
    return inner_->getExpandableSegmentSizes(d);
  }
  void enable(bool on) override { inner_->enable(on); }
  bool isEnabled() const override { return inner_->isEnabled(); }
  void cacheInfo(c10::DeviceIndex d, size_t* largest) override { inner_->cacheInfo(d, largest); }
  void* getBaseAllocation(void* p, size_t* size) override {
    return inner_->getBaseAllocation(p, size);
  }
  cc::SnapshotInfo snapshot(c10::MempoolId_t pool, bool traces) override {
    return inner_->snapshot(pool, traces);
  }
  void beginAllocateToPool(c10::DeviceIndex d, c10::MempoolId_t pool,
                           std::function<bool(cudaStream_t)> filter) override {
    inner_->beginAllocateToPool(d, pool, std::move(filter));
  }
  void endAllocateToPool(c10::DeviceIndex d, c10::MempoolId_t pool) override {
    inner_->endAllocateToPool(d, pool);
  }
  void releasePool(c10::DeviceIndex d, c10::MempoolId_t pool) override {
    inner_->releasePool(d, pool);
  }
  int getPoolUseCount(c10::DeviceIndex d, c10::MempoolId_t pool) override {
    return inner_->getPoolUseCount(d, pool);
  }
  void createOrIncrefPool(c10::DeviceIndex d, c10::MempoolId_t pool,
                          std::shared_ptr<cc::CUDAAllocator> a) override {
    inner_->createOrIncrefPool(d, pool, std::move(a));
  }
  void setUseOnOOM(c10::DeviceIndex d, c10::MempoolId_t pool, bool on) override {
    inner_->setUseOnOOM(d, pool, on);
  }
  void setNoSplit(c10::DeviceIndex d, c10::MempoolId_t pool) override {
    inner_->setNoSplit(d, pool);
  }
  bool checkPoolLiveAllocations(c10::DeviceIndex d, c10::MempoolId_t pool,
                                const std::unordered_set<void*>& live) override {
    return inner_->checkPoolLiveAllocations(d, pool, live);
  }
  cc::ShareableHandle shareIpcHandle(void* p) override { return inner_->shareIpcHandle(p); }
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override {
    return inner_->getIpcDevPtr(std::move(handle));
  }
  bool isHistoryEnabled() override { return inner_->isHistoryEnabled(); }
  void recordHistory(bool on, cc::CreateContextFn recorder, size_t most, cc::RecordContext when,
                     bool clear, const std::vector<std::string>& skip) override {
    inner_->recordHistory(on, recorder, most, when, clear, skip);
  }
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& md) override {
    inner_->recordAnnotation(md);
  }
  void pushCompileContext(std::string& md) override { inner_->pushCompileContext(md); }
  void popCompileContext() override { inner_->popCompileContext(); }
  void setUserMetadata(const std::string& metadata) override { inner_->setUserMetadata(metadata); }
  std::string getUserMetadata() override { return inner_->getUserMetadata(); }
  void attachOutOfMemoryObserver(cc::OutOfMemoryObserver o) override {
    inner_->attachOutOfMemoryObserver(std::move(o));
  }
  void attachAllocatorTraceTracker(cc::AllocatorTraceTracker t) override {
    inner_->attachAllocatorTraceTracker(std::move(t));
  }
  void enablePeerAccess(c10::DeviceIndex a, c10::DeviceIndex b) override {
    inner_->enablePeerAccess(a, b);
  }
  cudaError_t memcpyAsync(void* to, int to_device, const void* from, int from_device, size_t n,
                          cudaStream_t s, bool peer) override {
    return inner_->memcpyAsync(to, to_device, from, from_device, n, s, peer);
  }
  std::shared_ptr<cc::AllocatorState> getCheckpointState(c10::DeviceIndex d,
                                                         c10::MempoolId_t id) override {
    return inner_->getCheckpointState(d, id);
  }
  cc::CheckpointDelta setCheckpointPoolState(c10::DeviceIndex d,
                                             std::shared_ptr<cc::AllocatorState> state) override {
    return inner_->setCheckpointPoolState(d, std::move(state));
  }
  std::string name() override { return "tandem"; }

 private:
  static void free_block(void* block) {
    ChargedBlocks::get().free(block);
    g_inner->raw_deleter()(block);
  }
  inline static cc::CUDAAllocator* g_inner = nullptr;
  cc::CUDAAllocator* inner_;
};

}  // namespace

void install_cuda_ledger() {
  // Never destroyed, like the allocator it stands before.
  auto* ours = new ChargingCudaAllocator(cc::get());
  cc::allocator.store(ours);
  c10::SetAllocator(c10::DeviceType::CUDA, ours, /*priority=*/1);
}

}  // namespace tandem

#else
namespace tandem {
void install_cuda_ledger() {}
}  // namespace tandem
#endif
