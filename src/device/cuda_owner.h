// Which logical device a CUDA stream belongs to. Autograd runs backward work on its own threads,
// where no DeviceScope is open, but on the stream of the forward work: the stream then tells whose
// work it is.
#pragma once

#ifdef TANDEM_WITH_CUDA
#include <c10/cuda/CUDAStream.h>

namespace tandem {

class LogicalDevice;
class Stream;

void remember_stream_owner(c10::cuda::CUDAStream stream, LogicalDevice& device);
LogicalDevice* owner_of_current_stream();  // nullptr when none, or when CUDA was never used
bool shares_cuda_device(int cuda_index);   // is that GPU split among several logical devices?
c10::cuda::CUDAStream raw_cuda_stream(Stream& stream);

}  // namespace tandem
#endif
