#include "util/host_memory.h"

#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace tandem::tests {
namespace {

constexpr uint64_t gib = uint64_t{1} << 30;
std::string gibibytes(uint64_t count) { return std::to_string(count * gib) + "\n"; }

// A machine with 16 GiB free, and what its control groups say.
struct Machine {
  Machine() {
    root.write("proc/meminfo", "MemTotal:  33554432 kB\nMemAvailable:   16777216 kB\nHuge: 0\n");
  }
  void group(const std::string& file, const std::string& text) {
    root.write("sys/fs/cgroup/" + file, text);
  }
  uint64_t available() const { return available_host_memory(root.path()); }
  uint64_t limit() const { return control_group_limit(root.path()); }
  TestFolder root;
};

}  // namespace

TEST(HostMemory, IsWhatTheMachineHasFree) {
  Machine machine;
  EXPECT_EQ(machine.available(), 16 * gib);
  machine.group("memory.max", "max\n");
  machine.group("memory.current", "5000000000\n");
  EXPECT_EQ(machine.available(), 16 * gib);
  EXPECT_EQ(machine.limit(), ~uint64_t{0});
  EXPECT_EQ(available_host_memory("/no/such/root"), 0u);
}

TEST(HostMemory, IsNoMoreThanAContainerLeaves) {
  Machine machine;
  machine.group("memory.max", gibibytes(6));
  machine.group("memory.current", gibibytes(4));
  EXPECT_EQ(machine.available(), 2 * gib);
  EXPECT_EQ(machine.limit(), 6 * gib);
  machine.group("memory.stat", "anon 7\ninactive_file " + gibibytes(1) + "active_file 9\n");
  EXPECT_EQ(machine.available(), 3 * gib) << "files that were read give way";
  machine.group("memory.current", gibibytes(9));
  EXPECT_EQ(machine.available(), 0u);
}

TEST(HostMemory, IsNoMoreThanAnyGroupAroundAJobLeaves) {
  Machine machine;
  machine.root.write("proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  machine.group("slurm/job_7/memory.max", gibibytes(8));
  machine.group("slurm/job_7/memory.current", gibibytes(3));
  machine.group("slurm/job_7/step_0/memory.max", "max\n");
  EXPECT_EQ(machine.available(), 5 * gib);
  EXPECT_EQ(machine.limit(), 8 * gib);
  machine.group("slurm/memory.max", gibibytes(4));
  EXPECT_EQ(machine.available(), 4 * gib);
  machine.group("other/memory.max", gibibytes(1));
  EXPECT_EQ(machine.available(), 4 * gib) << "not a group of this process";
}

TEST(HostMemory, ControlGroupsOfTheFirstVersionCount) {
  Machine machine;
  machine.root.write("proc/self/cgroup",
                     "12:cpu,cpuacct:/a\n9:memory:/jobs/7\n1:name=systemd:/b\n");
  machine.group("memory/memory.limit_in_bytes", "9223372036854771712\n");  // no limit
  machine.group("memory/jobs/7/memory.limit_in_bytes", gibibytes(5));
  machine.group("memory/jobs/7/memory.usage_in_bytes", gibibytes(2));
  machine.group("memory/jobs/7/memory.stat",
                "inactive_file 3\ntotal_inactive_file " + gibibytes(1));
  EXPECT_EQ(machine.available(), 4 * gib);
  EXPECT_EQ(machine.limit(), 5 * gib);
}

}  // namespace tandem::tests
