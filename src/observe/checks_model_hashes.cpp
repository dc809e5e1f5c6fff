#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "observe/checks_model.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

constexpr uintmax_t longest_list = 1 << 20;

std::optional<DigestKind> kind_of(std::string_view digest) {
  const bool hexadecimal =
      std::all_of(digest.begin(), digest.end(), [](unsigned char c) { return std::isxdigit(c); });
  if (hexadecimal && digest.size() == 64) return DigestKind::sha256;
  if (hexadecimal && digest.size() == 32) return DigestKind::md5;
  return std::nullopt;
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::string short_text(const fs::path& path) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  return error || bytes > longest_list ? "" : read_file(path);
}

class Hashes {
 public:
  explicit Hashes(const fs::path& folder) : folder_(folder) {}

  std::vector<KnownHash> all() && {
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder_, error))
      if (entry.is_regular_file(error)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      const std::string name = lower(file.filename().string());
      const bool sums = name.ends_with("sums") || name.ends_with("sums.txt");
      const bool own = name.ends_with(".sha256") || name.ends_with(".md5");
      if ((sums || own) && name != "hash.md5") add_list(file, own);
      add_cached(file);
    }
    for (const auto& entry : fs::directory_iterator(folder_ / ".cache/huggingface/download", error))
      if (entry.path().extension() == ".metadata") add_download(entry.path());
    return std::move(found_);
  }

 private:
  void add(const fs::path& file, const std::string& digest, const std::string& from) {
    const auto kind = kind_of(digest);
    // Only files of the folder itself: a list from elsewhere names nothing outside it.
    if (!kind || !is_file(file) ||
        file.lexically_normal().parent_path() != (folder_ / "x").lexically_normal().parent_path())
      return;
    found_.push_back({file, *kind, lower(digest), from});
  }

  // Lines `<hash>  name` or `<hash> *name`; in a file's own list the hash may stand alone.
  void add_list(const fs::path& list, bool own) {
    std::istringstream lines(short_text(list));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string digest, name;
      words >> digest >> name;
      if (name.starts_with('*')) name.erase(0, 1);
      if (name.empty() && own) name = list.stem().string();
      if (!name.empty()) add(folder_ / name, digest, list.filename().string());
    }
  }

  // <commit>, <etag>, <time>: the etag of a large file is its SHA-256.
  void add_download(const fs::path& record) {
    std::istringstream lines(short_text(record));
    std::string commit, etag;
    lines >> commit >> etag;
    if (etag.size() == 64) add(folder_ / record.stem(), etag, "the download's record");
  }

  // models--x/snapshots/<commit>/model.safetensors -> ../../blobs/<SHA-256>
  void add_cached(const fs::path& file) {
    std::error_code error;
    const fs::path target = fs::read_symlink(file, error);
    const std::string name = target.filename().string();
    if (!error && name.size() == 64) add(file, name, "the cache's file name");
  }

  fs::path folder_;
  std::vector<KnownHash> found_;
};

}  // namespace

std::vector<KnownHash> known_hashes(const fs::path& folder) { return Hashes(folder).all(); }

}  // namespace tandem
