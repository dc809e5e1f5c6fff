#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

#include "observe/checks.h"
#include "util/child.h"
#include "util/scratch.h"

namespace tandem::tests {

TEST(HostChecks, ADiskThatIsNotThereFails) {
  const TestFolder scratch;
  const std::string path = (scratch / "missing").string();
  const Check check = check_disk(path);
  EXPECT_EQ(check.verdict, Verdict::fail);
  EXPECT_EQ(check.found, "`" + path + "`: No such file or directory");
  EXPECT_EQ(check.advice, "work in a folder that exists");
}

TEST(HostChecks, ADiskWithoutRoomFails) {
  const Check check = check_disk("/proc");  // holds 0 bytes on every machine
  EXPECT_EQ(check.verdict, Verdict::fail);
  EXPECT_TRUE(check.found.starts_with("0 B free for `/proc`")) << check.found;
}

TEST(HostChecks, AFolderThatMayNotBeWrittenFails) {
  const TestFolder scratch;
  std::filesystem::permissions(scratch.path(), std::filesystem::perms(0555));
  const ChildEnd end = in_child([&] {
    if (geteuid() == 0 && setuid(65534) != 0) return;
    const Check check = check_disk(scratch.path().string());
    std::printf("%s|%s|%s", to_string(check.verdict), check.found.c_str(), check.advice.c_str());
  });
  EXPECT_TRUE(end.out.starts_with("FAIL|")) << end.out;
  EXPECT_TRUE(contains(end.out, ", not writable|checkpoints and outputs cannot be written there"));
}

TEST(HostChecks, FewOpenFilesWarn) {
  const auto with_limit = [](rlim_t most) {
    return in_child([&] {
             rlimit limit{};
             getrlimit(RLIMIT_NOFILE, &limit);
             limit.rlim_cur = most;
             setrlimit(RLIMIT_NOFILE, &limit);
             const Check check = check_open_files();
             std::printf("%s|%s|%s", to_string(check.verdict), check.found.c_str(),
                         check.advice.c_str());
           })
        .out;
  };
  EXPECT_EQ(with_limit(256), "WARN|limit 256|raise it: ulimit -n 4096");
  EXPECT_EQ(with_limit(1024), "PASS|limit 1024|");
}

TEST(HostChecks, MemoryAndCoresAreReported) {
  EXPECT_TRUE(contains(check_host_memory().found, " GiB, ")) << check_host_memory().found;
  EXPECT_EQ(check_cores().found, std::to_string(std::thread::hardware_concurrency()));
  EXPECT_EQ(check_cores().verdict,
            std::thread::hardware_concurrency() < 4 ? Verdict::warn : Verdict::pass);
}

}  // namespace tandem::tests
