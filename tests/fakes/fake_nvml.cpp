// A stand-in for NVIDIA's management library, for tests: as many GPUs as TANDEM_FAKE_GPUS says; GPU
// i is partitioned into n MIG instances with TANDEM_FAKE_MIG=i:n; neighbours 0-1, 2-3, … reach each
// other over NVLink, the others not at all. TANDEM_FAKE_THROTTLE is the mask of reasons that hold
// the clocks down, TANDEM_FAKE_ECC=i:n gives GPU i n uncorrected errors, TANDEM_FAKE_TENANT=i:pid a
// process that holds 2 GiB of it. TANDEM_FAKE_NVML_BROKEN=1 makes initialisation fail.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Gpu {
  int index;
  int instance;  // -1: the whole GPU
};
constexpr int most = 16;
Gpu g_whole[most];
Gpu g_instances[most][most];

int number(const char* name) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : 0;
}
// "i:n" in a variable: n for GPU i, 0 for the others.
int number_of(const char* name, int index) {
  int gpu = -1, count = 0;
  const char* text = std::getenv(name);
  if (!text || std::sscanf(text, "%d:%d", &gpu, &count) != 2) return 0;
  return gpu == index ? count : 0;
}
int instances_of(int index) { return number_of("TANDEM_FAKE_MIG", index); }
const Gpu* of(void* handle) { return static_cast<const Gpu*>(handle); }

}  // namespace

extern "C" {

int nvmlInit_v2() { return number("TANDEM_FAKE_NVML_BROKEN") ? 9 : 0; }
int nvmlShutdown() { return 0; }

int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "580.99.01");
  return 0;
}
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  const int asked = number("TANDEM_FAKE_CUDA_VERSION");
  *version = asked ? asked : 13000;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(number("TANDEM_FAKE_GPUS"));
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  g_whole[index] = {static_cast<int>(index), -1};
  *handle = &g_whole[index];
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  unsigned index = 0;
  if (std::sscanf(uuid, "GPU-%8u-pretend", &index) != 1 || index >= most) return 6;  // not found
  return nvmlDeviceGetHandleByIndex_v2(index, handle);
}
int nvmlDeviceGetName(void* handle, char* text, unsigned size) {
  std::snprintf(text, size, "NVIDIA Pretend %d", of(handle)->index);
  return 0;
}
int nvmlDeviceGetUUID(void* handle, char* text, unsigned size) {
  const Gpu* gpu = of(handle);
  if (gpu->instance < 0) {
    std::snprintf(text, size, "GPU-%08d-pretend", gpu->index);
  } else {
    std::snprintf(text, size, "MIG-%08d-%d-pretend", gpu->index, gpu->instance);
  }
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* memory) {
  memory[0] = 24ull << 30;
  memory[1] = 23ull << 30;
  memory[2] = 1ull << 30;
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* handle, unsigned* rates) {
  rates[0] = 10u + static_cast<unsigned>(of(handle)->index);
  rates[1] = 5;
  return 0;
}
int nvmlDeviceGetTemperature(void*, unsigned, unsigned* degrees) {
  *degrees = 41;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 123400;
  return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = 700000;
  return 0;
}
int nvmlDeviceGetClockInfo(void*, unsigned kind, unsigned* megahertz) {
  *megahertz = kind == 2 ? 3201 : 1215;  // of the memory, of the multiprocessors
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void*, unsigned kind, unsigned* megahertz) {
  *megahertz = kind == 2 ? 3201 : 1980;
  return 0;
}
int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* mask) {
  *mask = static_cast<unsigned long long>(number("TANDEM_FAKE_THROTTLE"));
  return 0;
}
int nvmlDeviceGetEccMode(void*, unsigned* current, unsigned* pending) {
  *current = *pending = 1;
  return 0;
}
int nvmlDeviceGetTotalEccErrors(void* handle, unsigned kind, unsigned, unsigned long long* count) {
  const int errors = kind == 1 ? number_of("TANDEM_FAKE_ECC", of(handle)->index) : 0;
  *count = static_cast<unsigned long long>(errors);
  return 0;
}
struct FakeProcess {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, FakeProcess* list) {
  const int pid = number_of("TANDEM_FAKE_TENANT", of(handle)->index);
  *count = pid > 0 ? 1 : 0;
  if (pid > 0) list[0] = {static_cast<unsigned>(pid), 2ull << 30, ~0u, ~0u};
  return 0;
}
int nvmlDeviceGetPcieThroughput(void*, unsigned counter, unsigned* kilobytes) {
  *kilobytes = counter == 0 ? 250 : 12000;  // sent, received
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return 0;
}
int nvmlDeviceGetMigMode(void* handle, unsigned* current, unsigned* pending) {
  *current = *pending = instances_of(of(handle)->index) > 0;
  return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) {
  *count = 7;
  return 0;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void* handle, unsigned index, void** instance) {
  const int gpu = of(handle)->index;
  if (static_cast<int>(index) >= instances_of(gpu)) return 6;  // not found
  g_instances[gpu][index] = {gpu, static_cast<int>(index)};
  *instance = &g_instances[gpu][index];
  return 0;
}
int nvmlDeviceGetP2PStatus(void* a, void* b, unsigned, unsigned* status) {
  *status = of(a)->index / 2 == of(b)->index / 2 ? 0 : 1;
  return 0;
}

}  // extern "C"
