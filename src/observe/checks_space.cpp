// Room for checkpoints.
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "observe/checks_storage.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;

uint64_t CheckpointNeed::one() const { return parameters * (average ? 16u : 12u); }

uint64_t CheckpointNeed::all() const {
  return static_cast<uint64_t>(std::max<int64_t>(keep, 1) + 2) * one();
}

FreeSpace free_space(const std::string& folder) {
  struct statvfs about {};
  if (::statvfs(folder.c_str(), &about) != 0) {
    throw Error(ErrorKind::io,
                fmt::format("cannot ask how much room `{}` has: {}", folder, std::strerror(errno)));
  }
  // File systems without a fixed number of entries say 0 of 0.
  return {.available = about.f_bavail * about.f_frsize,
          .files = about.f_files == 0 ? ~uint64_t{0} : about.f_favail};
}

std::string existing_folder(const std::string& path) {
  std::error_code ignored;
  fs::path folder = path.empty() ? fs::current_path(ignored) : fs::absolute(path, ignored);
  while (!fs::is_directory(folder, ignored) && folder.has_parent_path() &&
         folder != folder.parent_path())
    folder = folder.parent_path();
  return folder.string();
}

uint64_t checkpoint_bytes_in(const std::string& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    // `latest` and `best` are links to some of them.
    if (!entry.path().filename().string().starts_with("step-") || entry.is_symlink(error)) continue;
    for (const auto& file : fs::recursive_directory_iterator(entry.path(), error)) {
      const auto size = file.is_regular_file(error) ? file.file_size(error) : 0;
      if (!error) bytes += size;
    }
  }
  return bytes;
}

Check check_checkpoint_space(const std::string& folder, const CheckpointNeed& need,
                             const AskSpace& ask) {
  constexpr uint64_t few_files = 1000;
  Check check{.name = "room to save"};
  const std::string there = existing_folder(folder);
  FreeSpace space;
  try {
    space = ask(there);
  } catch (const Error& error) {
    return {.verdict = Verdict::fail, .name = check.name, .found = error.what()};
  }
  const uint64_t missing = need.all() - std::min(need.all(), need.bytes_there);
  check.found = fmt::format(
      "{} free for `{}`; {} checkpoints of {} need {}", format_bytes(space.available), folder,
      std::max<int64_t>(need.keep, 1) + 2, format_bytes(need.one()), format_bytes(need.all()));
  if (need.bytes_there > 0)
    check.found += fmt::format(", of which {} are there", format_bytes(need.bytes_there));
  if (::access(there.c_str(), W_OK) != 0) {
    check.verdict = Verdict::fail;
    check.found += ", not writable";
    check.advice = "choose a folder you may write to with --checkpoint-dir";
  } else if (space.files < few_files) {
    check.verdict = Verdict::fail;
    check.found += fmt::format(", room for {} more files only", space.files);
    check.advice = "remove files there, or choose another disk with --checkpoint-dir";
  } else if (space.available < missing) {
    check.verdict = Verdict::fail;
    check.advice = fmt::format(
        "free {} more, lower training.keep_checkpoints, or choose another disk with "
        "--checkpoint-dir",
        format_bytes(missing - space.available));
  } else if (space.available < 2 * missing) {
    check.verdict = Verdict::warn;
    check.advice = "it fits, but little is left for samples and logs";
  }
  return check;
}

}  // namespace tandem
