#include "util/host_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t none = std::numeric_limits<uint64_t>::max();

// 0: not there, or no number ("max").
uint64_t number_in(const fs::path& file) {
  uint64_t number = 0;
  return std::ifstream(file) >> number ? number : 0;
}

// Behind `name` in a file of lines "name number ...".
uint64_t named_number(const fs::path& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    uint64_t number = 0;
    if (words >> word >> number && word == name) return number;
  }
  return 0;
}

struct GroupMemory {
  uint64_t limit = none, left = none;
};

// The names of both versions of control groups.
GroupMemory memory_of(const fs::path& group) {
  uint64_t limit = number_in(group / "memory.max");
  uint64_t taken = number_in(group / "memory.current");
  std::string files = "inactive_file";
  if (limit == 0) {
    limit = number_in(group / "memory.limit_in_bytes");
    taken = number_in(group / "memory.usage_in_bytes");
    files = "total_inactive_file";
  }
  if (limit == 0) return {};
  taken -= std::min(taken, named_number(group / "memory.stat", files));
  return {.limit = limit, .left = limit - std::min(limit, taken)};
}

// A limit of any group around ours holds. In a container its own may stand where the tree begins.
GroupMemory memory_of_groups(const fs::path& root) {
  const fs::path tree = root / "sys/fs/cgroup";
  std::vector<fs::path> groups = {tree, tree / "memory"};
  std::ifstream file(root / "proc/self/cgroup");  // lines "number:controllers:/path"
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() != 3) continue;
    const bool first_version = ("," + parts[1] + ",").find(",memory,") != std::string::npos;
    if (!parts[1].empty() && !first_version) continue;
    const fs::path top = first_version ? tree / "memory" : tree;
    for (fs::path inner = fs::path(parts[2]).relative_path(); !inner.empty();
         inner = inner.parent_path())
      groups.push_back(top / inner);
  }
  GroupMemory all;
  for (const fs::path& group : groups) {
    const GroupMemory one = memory_of(group);
    all = {.limit = std::min(all.limit, one.limit), .left = std::min(all.left, one.left)};
  }
  return all;
}

}  // namespace

uint64_t available_host_memory(const fs::path& root) {
  const uint64_t available = named_number(root / "proc/meminfo", "MemAvailable:") << 10;
  return std::min(available, memory_of_groups(root).left);
}

uint64_t control_group_limit(const fs::path& root) { return memory_of_groups(root).limit; }

}  // namespace tandem
