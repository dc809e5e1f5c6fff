// A stand-in for the CUDA driver, for tests: TANDEM_FAKE_GPUS devices, as CUDA_VISIBLE_DEVICES lets
// it see.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {
bool g_initialised = false;
}

extern "C" {

int cuInit(unsigned) {
  g_initialised = true;
  return 0;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cuDeviceGetCount(int* count) {
  if (!g_initialised) return 3;
  // As the driver: what the variable hides is not there.
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const char* text = std::getenv("TANDEM_FAKE_GPUS");
  *count = visible ? 0 : text ? std::atoi(text) : 0;
  return 0;
}
int cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}
int cuDeviceGetName(char* text, int size, int device) {
  std::snprintf(text, static_cast<size_t>(size), "Driver Pretend %d", device);
  return 0;
}
int cuDeviceGetUuid_v2(unsigned char* bytes, int device) {
  std::memset(bytes, 0x10 + device, 16);
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = size_t{16} << 30;
  return 0;
}

}  // extern "C"
