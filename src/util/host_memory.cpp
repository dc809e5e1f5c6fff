#include "util/host_memory.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace tandem {
namespace {

// 0: not there, or no number.
uint64_t number_in(const std::filesystem::path& file) {
  uint64_t number = 0;
  return std::ifstream(file) >> number ? number : 0;
}

// Behind `name` in a file of lines "name number ...".
uint64_t named_number(const std::filesystem::path& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    uint64_t number = 0;
    if (words >> word >> number && word == name) return number;
  }
  return 0;
}

}  // namespace

uint64_t available_host_memory(const std::filesystem::path& root) {
  const uint64_t available = named_number(root / "proc/meminfo", "MemAvailable:") << 10;
  const std::filesystem::path group = root / "sys/fs/cgroup";
  const uint64_t allowed = number_in(group / "memory.max");  // "max" is no number: no limit
  if (allowed == 0) return available;
  const uint64_t taken = number_in(group / "memory.current");
  const uint64_t files = std::min(taken, named_number(group / "memory.stat", "inactive_file"));
  return std::min(available, allowed - std::min(allowed, taken - files));
}

}  // namespace tandem
