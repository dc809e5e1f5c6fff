#include "util/host_memory.h"

#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace tandem::tests {
namespace {

constexpr uint64_t gib = uint64_t{1} << 30;

// A machine with 16 GiB free, and what its control group says.
struct Machine {
  Machine() {
    root.write("proc/meminfo", "MemTotal:  33554432 kB\nMemAvailable:   16777216 kB\nHuge: 0\n");
  }
  void group(const std::string& file, const std::string& text) {
    root.write("sys/fs/cgroup/" + file, text);
  }
  uint64_t available() const { return available_host_memory(root.path()); }
  TestFolder root;
};

}  // namespace

TEST(HostMemory, IsWhatTheMachineHasFree) {
  Machine machine;
  EXPECT_EQ(machine.available(), 16 * gib);
  machine.group("memory.max", "max\n");
  machine.group("memory.current", "5000000000\n");
  EXPECT_EQ(machine.available(), 16 * gib);
  EXPECT_EQ(available_host_memory("/no/such/root"), 0u);
}

TEST(HostMemory, IsNoMoreThanTheControlGroupLeaves) {
  Machine machine;
  machine.group("memory.max", std::to_string(6 * gib) + "\n");
  machine.group("memory.current", std::to_string(4 * gib) + "\n");
  EXPECT_EQ(machine.available(), 2 * gib);
  machine.group("memory.stat",
                "anon 7\ninactive_file " + std::to_string(gib) + "\nactive_file 9\n");
  EXPECT_EQ(machine.available(), 3 * gib) << "files that were read give way";
  machine.group("memory.current", std::to_string(9 * gib) + "\n");
  EXPECT_EQ(machine.available(), 0u);
}

}  // namespace tandem::tests
