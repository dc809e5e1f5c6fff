#include "observe/checks_gpu.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <map>

namespace tandem::tests {
namespace {

// NVML as functions of this program. What `sick_gpu` says is what they answer.
struct SickGpu {
  unsigned ecc = 1;
  unsigned long long uncorrected = 0, corrected = 2, reasons = 1;
  unsigned rows = 0, rows_pending = 0, rows_failed = 0;
  unsigned clock = 345, most_clock = 1980, lanes = 16, most_lanes = 16, mode = 0;
  std::vector<std::pair<unsigned, unsigned long long>> processes;
};
SickGpu sick_gpu;
int sick_gpu_opened = 0;

struct SickProcess {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

int sick_init() { return ++sick_gpu_opened, 0; }
int sick_shutdown() { return --sick_gpu_opened, 0; }
int sick_handle(const char* uuid, void** handle) {
  *handle = &sick_gpu;
  return std::strcmp(uuid, "GPU-a") == 0 ? 0 : 6;
}
int sick_ecc(void*, unsigned* now, unsigned* later) { return *now = *later = sick_gpu.ecc, 0; }
int sick_errors(void*, unsigned kind, unsigned counter, unsigned long long* count) {
  *count = kind == 1 ? sick_gpu.uncorrected : sick_gpu.corrected;
  return counter == 0 ? 0 : 2;
}
int sick_rows(void*, unsigned* corrected, unsigned* uncorrected, unsigned* waits,
              unsigned* failed) {
  *corrected = 0, *uncorrected = sick_gpu.rows;
  *waits = sick_gpu.rows_pending, *failed = sick_gpu.rows_failed;
  return 0;
}
int sick_reasons(void*, unsigned long long* bits) { return *bits = sick_gpu.reasons, 0; }
int sick_clock(void*, unsigned type, unsigned* mhz) { return *mhz = sick_gpu.clock, type != 1; }
int sick_most(void*, unsigned type, unsigned* mhz) { return *mhz = sick_gpu.most_clock, type != 1; }
int sick_lanes(void*, unsigned* lanes) { return *lanes = sick_gpu.lanes, 0; }
int sick_most_lanes(void*, unsigned* lanes) { return *lanes = sick_gpu.most_lanes, 0; }
int sick_mode(void*, unsigned* mode) { return *mode = sick_gpu.mode, 0; }
int sick_processes(void*, unsigned* count, SickProcess* list) {
  for (size_t i = 0; i < sick_gpu.processes.size() && i < *count; ++i)
    list[i] = {sick_gpu.processes[i].first, sick_gpu.processes[i].second, 0, 0};
  *count = static_cast<unsigned>(sick_gpu.processes.size());
  return 0;
}

template <class Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

std::map<std::string, void*> sick_nvml() {
  return {{"nvmlInit_v2", address_of(sick_init)},
          {"nvmlShutdown", address_of(sick_shutdown)},
          {"nvmlDeviceGetHandleByUUID", address_of(sick_handle)},
          {"nvmlDeviceGetEccMode", address_of(sick_ecc)},
          {"nvmlDeviceGetTotalEccErrors", address_of(sick_errors)},
          {"nvmlDeviceGetRemappedRows", address_of(sick_rows)},
          {"nvmlDeviceGetCurrentClocksThrottleReasons", address_of(sick_reasons)},
          {"nvmlDeviceGetClockInfo", address_of(sick_clock)},
          {"nvmlDeviceGetMaxClockInfo", address_of(sick_most)},
          {"nvmlDeviceGetCurrPcieLinkWidth", address_of(sick_lanes)},
          {"nvmlDeviceGetMaxPcieLinkWidth", address_of(sick_most_lanes)},
          {"nvmlDeviceGetComputeMode", address_of(sick_mode)},
          {"nvmlDeviceGetComputeRunningProcesses_v3", address_of(sick_processes)}};
}

std::vector<GpuHealth> read_sick(const std::map<std::string, void*>& functions,
                                 std::vector<GpuInfo> gpus = {{.index = 3, .uuid = "GPU-a"}}) {
  return read_gpu_health(
      [&](const char* name) {
        const auto found = functions.find(name);
        return found == functions.end() ? nullptr : found->second;
      },
      {.source = "nvml", .gpus = std::move(gpus)});
}

// The checks of the one GPU, by the last word of their names.
std::map<std::string, Check> sick_checks(const SickGpu& gpu) {
  sick_gpu = gpu;
  std::map<std::string, Check> all;
  for (const Check& check : check_gpu_health(read_sick(sick_nvml()).at(0)))
    all[check.name.substr(check.name.rfind(' ') + 1)] = check;
  return all;
}

}  // namespace

TEST(GpuHealth, AHealthyGpuPassesWithItsFigures) {
  const auto checks = sick_checks({});
  EXPECT_EQ(checks.size(), 3u);
  EXPECT_EQ(checks.at("memory").verdict, Verdict::pass);
  EXPECT_EQ(checks.at("memory").name, "GPU 3 memory");
  EXPECT_EQ(checks.at("memory").found,
            "ECC on, 0 uncorrected and 2 corrected errors since the driver started");
  EXPECT_EQ(checks.at("clocks").verdict, Verdict::pass);
  EXPECT_EQ(checks.at("clocks").found, "345 of 1980 MHz, idle");
  EXPECT_EQ(checks.at("tenants").verdict, Verdict::pass);
  EXPECT_EQ(checks.at("tenants").found, "no other process");
  EXPECT_EQ(sick_gpu_opened, 0) << "the library was not closed again";
}

TEST(GpuHealth, UncorrectedMemoryErrorsFail) {
  const Check check = sick_checks({.uncorrected = 3, .rows = 1}).at("memory");
  EXPECT_EQ(check.verdict, Verdict::fail);
  EXPECT_EQ(check.found,
            "ECC on, 3 uncorrected and 2 corrected errors since the driver started, 1 rows "
            "replaced");
  EXPECT_NE(check.advice.find("nvidia-smi --gpu-reset -i 3"), std::string::npos);
}

TEST(GpuHealth, RowsThatWaitWarnAndRowsThatCannotBeReplacedFail) {
  EXPECT_EQ(sick_checks({.rows_pending = 1}).at("memory").verdict, Verdict::warn);
  const Check worn = sick_checks({.rows_failed = 1}).at("memory");
  EXPECT_EQ(worn.verdict, Verdict::fail);
  EXPECT_NE(worn.advice.find("replace it"), std::string::npos);
}

TEST(GpuHealth, ThrottlingIsNamed) {
  const Check hot = sick_checks({.reasons = 0x40 | 0x8}).at("clocks");
  EXPECT_EQ(hot.verdict, Verdict::warn);
  EXPECT_EQ(hot.found,
            "345 of 1980 MHz, slowed down by the hardware, slowed down by the hardware to cool");
  EXPECT_NE(hot.advice.find("fans"), std::string::npos);
  const Check braked = sick_checks({.reasons = 0x80}).at("clocks");
  EXPECT_EQ(braked.verdict, Verdict::warn);
  EXPECT_NE(braked.advice.find("power supply"), std::string::npos);
  // Its power cap is where a busy GPU belongs.
  EXPECT_EQ(sick_checks({.reasons = 0x4}).at("clocks").verdict, Verdict::pass);
}

TEST(GpuHealth, OtherProcessesAreNamedAndThisOneIsNot) {
  const auto self = static_cast<unsigned>(getpid());
  const auto parent = static_cast<unsigned>(getppid());
  const Check check =
      sick_checks({.processes = {{self, 1 << 20}, {parent, 5ull << 30}, {4000001, ~0ull}}})
          .at("tenants");
  EXPECT_EQ(check.verdict, Verdict::warn);
  EXPECT_NE(check.found.find("(process " + std::to_string(parent) + ") with 5.0 GiB"),
            std::string::npos)
      << check.found;
  EXPECT_TRUE(check.found.ends_with(", process 4000001")) << check.found;
  EXPECT_EQ(check.found.find("process " + std::to_string(self) + " "), std::string::npos);
}

TEST(GpuHealth, AGpuThatLetsNobodyInFails) {
  EXPECT_EQ(sick_checks({.mode = 2}).at("tenants").verdict, Verdict::fail);
  EXPECT_EQ(sick_checks({.mode = 3}).at("tenants").verdict, Verdict::pass);
  EXPECT_EQ(sick_checks({.mode = 3, .processes = {{4000001, 1}}}).at("tenants").verdict,
            Verdict::fail);
}

TEST(GpuHealth, ANarrowSlotWarns) {
  const Check check = sick_checks({.lanes = 4}).at("slot");
  EXPECT_EQ(check.verdict, Verdict::warn);
  EXPECT_EQ(check.found, "4 PCIe lanes of the 16 the card has");
}

TEST(GpuHealth, WhatTheDriverDoesNotSayIsNoFault) {
  const std::map<std::string, void*> bare = {
      {"nvmlInit_v2", address_of(sick_init)},
      {"nvmlShutdown", address_of(sick_shutdown)},
      {"nvmlDeviceGetHandleByUUID", address_of(sick_handle)}};
  const auto health = read_sick(bare);
  ASSERT_EQ(health.size(), 1u);
  const auto checks = check_gpu_health(health[0]);
  EXPECT_EQ(checks[0].found, "this card counts no memory errors");
  EXPECT_EQ(checks[1].verdict, Verdict::skip);
  EXPECT_EQ(checks[1].found, "the driver does not say");
  EXPECT_EQ(checks[2].verdict, Verdict::pass);
  EXPECT_TRUE(read_sick({}).empty());  // no library
  EXPECT_TRUE(read_sick(bare, {{.uuid = "GPU-unknown"}}).empty());
}

TEST(PeerChecks, PairsWithoutPeerAccessWarn) {
  GpuProbe probe{.source = "nvml"};
  probe.gpus = {{.index = 0, .peers = {1}, .nvlinks = {1}},
                {.index = 1, .peers = {0}, .nvlinks = {0}}};
  ASSERT_EQ(check_peers(probe).size(), 1u);
  EXPECT_EQ(check_peers(probe)[0].verdict, Verdict::pass);
  EXPECT_EQ(check_peers(probe)[0].found, "1 of 1 pairs read each other's memory (1 over NVLink)");
  probe.gpus.push_back({.index = 2});
  const Check check = check_peers(probe)[0];
  EXPECT_EQ(check.verdict, Verdict::warn);
  EXPECT_EQ(check.found,
            "1 of 3 pairs read each other's memory (1 over NVLink), not GPU 0 and GPU 2");
  probe.source = "driver";
  EXPECT_EQ(check_peers(probe)[0].verdict, Verdict::skip);
  probe.gpus.resize(1);
  EXPECT_TRUE(check_peers(probe).empty());
}

}  // namespace tandem::tests
