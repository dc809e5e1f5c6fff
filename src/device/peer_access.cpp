#include "device/peer_access.h"

#include "device/logical_device.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/cuda/PeerToPeerAccess.h>
#endif

namespace tandem {

bool has_peer_access([[maybe_unused]] const LogicalDevice& from,
                     [[maybe_unused]] const LogicalDevice& to) {
#ifdef TANDEM_WITH_CUDA
  const bool two_cards = from.kind() == DeviceKind::cuda && to.kind() == DeviceKind::cuda &&
                         from.info().cuda_index != to.info().cuda_index;
  if (two_cards) {
    return at::cuda::get_p2p_access(static_cast<c10::DeviceIndex>(to.info().cuda_index),
                                    static_cast<c10::DeviceIndex>(from.info().cuda_index));
  }
#endif
  return true;
}

}  // namespace tandem
