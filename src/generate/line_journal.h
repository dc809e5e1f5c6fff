// A file that lines are added to while work goes on, and that one process at a time holds. Each
// line is one write, so that a kill leaves at most the last one half; that one is ended, and the
// next goes on a line of its own. `add` may be called from any thread.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace tandem {

class LineJournal {
 public:
  // Makes the file when it is not there. Throws Error(io), with `held` as its sentence when another
  // process holds it.
  LineJournal(std::filesystem::path path, const std::string& held);
  ~LineJournal();
  LineJournal(const LineJournal&) = delete;
  LineJournal& operator=(const LineJournal&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // False where the file system keeps no locks.
  bool locked() const { return locked_; }
  std::vector<std::string> lines() const;  // without their ends
  void add(const std::string& line);       // without its end
  void sync();                             // forces what was added to disk
  // Removes the file; nothing may be added any more.
  void remove();

  // Whether some process holds the file; false when it is not there.
  static bool is_held(const std::filesystem::path& path);
  // Never throws.
  static void remove_unless_held(const std::filesystem::path& path);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  bool locked_ = true;
  std::mutex mutex_;
};

// Held by one process at a time: the file at `path`, which the holder may replace. Waits its turn.
class FileTurn {
 public:
  explicit FileTurn(const std::filesystem::path& path);
  ~FileTurn();
  FileTurn(const FileTurn&) = delete;
  FileTurn& operator=(const FileTurn&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace tandem
