#include "data/corpus/folder_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "data/corpus/clip_table.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

bool hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

[[noreturn]] void refuse(const std::string& folder, const std::error_code& error) {
  throw Error(ErrorKind::io, fmt::format("cannot read `{}`: {}", folder, error.message()));
}

std::vector<std::string> directly_in(const std::string& folder, bool folders) {
  std::error_code error;
  std::vector<std::string> found;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    const bool wanted = folders ? at->is_directory(ignored) : at->is_regular_file(ignored);
    if (wanted && !hidden(at->path())) found.push_back(at->path().string());
  }
  if (error) refuse(folder, error);
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<std::string> files_in(const std::string& folder) { return directly_in(folder, false); }
std::vector<std::string> folders_in(const std::string& folder) { return directly_in(folder, true); }

std::vector<std::string> files_below(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> found;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (hidden(at->path())) {
      at.disable_recursion_pending();
    } else if (at->is_regular_file(ignored)) {
      found.push_back(at->path().lexically_relative(folder).string());
    }
  }
  if (error) refuse(folder, error);
  std::sort(found.begin(), found.end());
  return found;
}

FolderCount count_files(const std::string& folder) {
  FolderCount count;
  for (const std::string& path : files_below(folder)) {
    count.sounds += has_audio_ending(path);
    count.texts += lower(path).ends_with(".txt");
  }
  return count;
}

}  // namespace tandem
