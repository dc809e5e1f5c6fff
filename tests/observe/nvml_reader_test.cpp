#include "observe/nvml_reader.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace tandem::tests {
namespace {

int reader_opened = 0;
int reader_init() { return ++reader_opened, 0; }
int reader_refuses() { return 9; }
int reader_shutdown() { return --reader_opened, 0; }
int reader_old_reasons(void*, unsigned long long* mask) { return *mask = 0x40, 0; }
int reader_handle(const char*, void** handle) { return *handle = &reader_opened, 0; }

template <class Function>
void* function_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

NvmlSymbols symbols_of(std::map<std::string, void*> functions) {
  return [functions = std::move(functions)](const char* name) -> void* {
    const auto found = functions.find(name);
    return found == functions.end() ? nullptr : found->second;
  };
}

}  // namespace

TEST(NvmlReader, ListsGpusAndFindsThemByTheirUuid) {
  setenv("TANDEM_FAKE_GPUS", "2", 1);
  const NvmlReader nvml(TANDEM_FAKE_NVML);
  const std::vector<NvmlGpu> gpus = nvml.gpus();
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].uuid(), "GPU-00000000-pretend");
  EXPECT_EQ(gpus[1].name(), "NVIDIA Pretend 1");
  EXPECT_EQ(gpus[1].memory().value().total, 24ULL << 30);
  const auto found = nvml.find("GPU-00000001-pretend");
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->utilisation().value().units, 0.11);
  EXPECT_FALSE(nvml.find("GPU-of-another-machine"));
}

TEST(NvmlReader, ClosesWhatItOpened) {
  const NvmlSymbols symbols = symbols_of(
      {{"nvmlInit_v2", function_of(reader_init)}, {"nvmlShutdown", function_of(reader_shutdown)}});
  {
    const NvmlReader nvml(symbols);
    EXPECT_EQ(reader_opened, 1);
    EXPECT_TRUE(nvml.gpus().empty());
  }
  EXPECT_EQ(reader_opened, 0);
}

TEST(NvmlReader, WithoutADriverKnowsNoGpu) {
  EXPECT_TRUE(NvmlReader("libno-such-library.so").gpus().empty());
  EXPECT_FALSE(NvmlReader("libno-such-library.so").find("GPU-0"));
  {
    const NvmlReader refused(
        symbols_of({{"nvmlInit_v2", function_of(reader_refuses)},
                    {"nvmlShutdown", function_of(reader_shutdown)},
                    {"nvmlDeviceGetHandleByUUID", function_of(reader_handle)}}));
    EXPECT_FALSE(refused.find("GPU-0"));
  }
  EXPECT_EQ(reader_opened, 0) << "what was not opened is not closed";
}

TEST(NvmlReader, AsksAnOlderDriverByOlderNamesAndLeavesOutWhatItLacks) {
  const NvmlReader nvml(
      symbols_of({{"nvmlInit_v2", function_of(reader_init)},
                  {"nvmlDeviceGetHandleByUUID", function_of(reader_handle)},
                  {"nvmlDeviceGetCurrentClocksThrottleReasons", function_of(reader_old_reasons)}}));
  const auto gpu = nvml.find("GPU-0");
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->clock_reasons(), 0x40U);
  EXPECT_EQ(gpu->name(), "");
  EXPECT_FALSE(gpu->utilisation());
  EXPECT_FALSE(gpu->memory());
  EXPECT_FALSE(gpu->power());
  EXPECT_FALSE(gpu->received());
  EXPECT_EQ(gpu->call("nvmlDeviceGetEccMode"), NvmlReader::missing);
}

}  // namespace tandem::tests
