#include "observe/checks_storage.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

struct Mount {
  std::string device, point, file_system, source;  // device: "8:1"
};

// Blanks in a mount point are written as \040.
std::string unescaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

// A line of mountinfo: id parent device root point options… - type source options
std::vector<Mount> read_mounts(const std::string& file) {
  std::vector<Mount> mounts;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> all;
    for (std::string word; words >> word;) all.push_back(word);
    const auto dash = std::find(all.begin(), all.end(), "-");
    if (all.size() < 5 || all.end() - dash < 3) continue;
    mounts.push_back({all[2], unescaped(all[4]), dash[1], dash[2]});
  }
  return mounts;
}

bool lies_below(const std::string& path, const std::string& point) {
  if (point == "/") return true;
  return path.starts_with(point) && (path.size() == point.size() || path[point.size()] == '/');
}

// The innermost one; of several on one point the last mounted.
Mount mount_of(const std::string& path, const std::vector<Mount>& mounts) {
  Mount best;
  for (const Mount& mount : mounts)
    if (lies_below(path, mount.point) && mount.point.size() >= best.point.size()) best = mount;
  return best;
}

bool is_network(const std::string& type) {
  static const char* const names[] = {
      "nfs",  "nfs4", "cifs",      "smb3",     "smbfs",  "9p",       "ceph",   "lustre",
      "gpfs", "afs",  "glusterfs", "virtiofs", "beegfs", "orangefs", "wekafs", "panfs"};
  return type.starts_with("fuse.") || type == "fuse" ||
         std::find(std::begin(names), std::end(names), type) != std::end(names);
}

// The folder of the whole disk: a partition's is inside it.
fs::path disk_folder(const std::string& device, const std::string& sys) {
  std::error_code error;
  fs::path folder = fs::canonical(fs::path(sys) / "dev/block" / device, error);
  if (error) return {};
  if (!fs::exists(folder / "queue", error)) folder = folder.parent_path();
  return fs::exists(folder / "queue", error) ? folder : fs::path();
}

// File systems with devices of their own (btrfs, zfs) name the disk as their source.
std::string block_device(const Mount& mount) {
  struct stat about {};
  if (mount.source.starts_with("/dev/") && ::stat(mount.source.c_str(), &about) == 0 &&
      S_ISBLK(about.st_mode))
    return fmt::format("{}:{}", major(about.st_rdev), minor(about.st_rdev));
  return mount.device;
}

}  // namespace

std::string Storage::describe() const {
  const std::string on = disk.empty() ? "" : " `" + disk + "`";
  const std::string type = file_system.empty() ? "" : ", " + file_system;
  switch (kind) {
    case Kind::ssd: return fmt::format("SSD{}{}", on, type);
    case Kind::hdd: return fmt::format("HDD{}{}", on, type);
    case Kind::virtual_disk: return fmt::format("virtual disk{}{}", on, type);
    case Kind::memory: return fmt::format("memory ({})", file_system);
    case Kind::overlay: return "a container's own layer (overlay)";
    case Kind::network: return fmt::format("network or user-space file system ({})", file_system);
    case Kind::unknown: break;
  }
  return fmt::format("unknown{}", type);
}

Storage storage_of(const std::string& path, const StorageRoots& roots) {
  std::error_code error;
  const fs::path full = fs::canonical(path, error);
  Storage storage;
  if (error) return storage;
  const Mount mount = mount_of(full.string(), read_mounts(roots.mounts));
  storage.file_system = mount.file_system;
  if (mount.file_system == "tmpfs" || mount.file_system == "ramfs") {
    storage.kind = Storage::Kind::memory;
  } else if (mount.file_system == "overlay") {
    storage.kind = Storage::Kind::overlay;
  } else if (is_network(mount.file_system)) {
    storage.kind = Storage::Kind::network;
  } else if (const fs::path disk = disk_folder(block_device(mount), roots.sys); !disk.empty()) {
    storage.disk = disk.filename().string();
    int rotating = -1;
    std::ifstream says(disk / "queue/rotational");
    if (!(says >> rotating)) rotating = -1;
    // What a hypervisor shows as a disk calls itself rotating whatever lies below.
    const bool guest = storage.disk.starts_with("vd") || storage.disk.starts_with("xvd");
    if (rotating == 0) storage.kind = Storage::Kind::ssd;
    if (rotating == 1) storage.kind = guest ? Storage::Kind::virtual_disk : Storage::Kind::hdd;
  }
  return storage;
}

Check check_storage_kind(const std::string& name, const Storage& storage) {
  Check check{.name = name, .found = storage.describe()};
  if (storage.kind == Storage::Kind::hdd) {
    check.verdict = Verdict::warn;
    check.advice =
        "it has to move its head for every clip: copy the dataset to an SSD, or keep what is "
        "computed from it there (tandem prepare DIR --cache codes,mels)";
  }
  return check;
}

}  // namespace tandem
