#include "observe/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "observe/crc32c.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr double seconds_between_flushes = 2;
constexpr size_t most_waiting = size_t{1} << 20;  // bytes
constexpr std::string_view name_start = "events.out.tfevents.";

double wall_time() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since_epoch).count();
}

template <class Number>
void append(std::string& out, Number number) {
  for (size_t byte = 0; byte < sizeof number; ++byte) out += static_cast<char>(number >> 8 * byte);
}

// Readers take the files of a folder in the order of their names, so a run that goes on within a
// second, or after the clock was set back, must still come later.
int64_t time_for_name(const std::filesystem::path& folder) {
  auto time = static_cast<int64_t>(wall_time());
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(name_start)) continue;
    const std::string digits = split(name.substr(name_start.size()), '.').front();
    if (const auto other = parse_int(digits)) time = std::max(time, *other + 1);
  }
  return time;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace

std::string framed_record(std::string_view bytes) {
  std::string length, record;
  append(length, uint64_t{bytes.size()});
  record.reserve(bytes.size() + 16);
  record += length;
  append(record, masked_crc32c(length));
  record += bytes;
  append(record, masked_crc32c(bytes));
  return record;
}

EventFile::EventFile(const std::filesystem::path& folder, int64_t first_step) {
  make_folder(folder);
  path_ = folder / fmt::format("{}{}.{}.{}.tandem", name_start, time_for_name(folder), host_name(),
                               getpid());
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) {
    throw Error(ErrorKind::io,
                fmt::format("cannot write `{}`: {}", path_.string(), std::strerror(errno)));
  }
  add(version_event(wall_time()));
  add(start_event({wall_time(), first_step + 1}));
  flush();
}

EventFile::~EventFile() {
  try {
    flush();
  } catch (const Error& error) {
    log_warning("{}", error.what());
  }
  ::close(descriptor_);
}

void EventFile::scalar(int64_t step, std::string_view tag, double value) {
  add(scalar_event({wall_time(), step}, tag, value));
}
void EventFile::text(int64_t step, std::string_view tag, std::string_view text) {
  add(text_event({wall_time(), step}, tag, text));
}
void EventFile::image(int64_t step, std::string_view tag, const EventImage& image) {
  add(image_event({wall_time(), step}, tag, image));
}
void EventFile::audio(int64_t step, std::string_view tag, const EventAudio& audio) {
  add(audio_event({wall_time(), step}, tag, audio));
}

void EventFile::add(const std::string& event) {
  std::lock_guard lock(mutex_);
  waiting_ += framed_record(event);
  const bool old = seconds_since(flushed_) > seconds_between_flushes;
  if (old || waiting_.size() > most_waiting) write_out();
}

void EventFile::flush() {
  std::lock_guard lock(mutex_);
  write_out();
}

void EventFile::write_out() {
  flushed_ = Clock::now();
  size_t done = 0;
  while (done < waiting_.size()) {
    const ssize_t written = ::write(descriptor_, waiting_.data() + done, waiting_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int why = errno;
      waiting_.clear();
      throw Error(ErrorKind::io,
                  fmt::format("cannot write `{}`: {}", path_.string(), std::strerror(why)))
          .hint("is the disk full?");
    }
    done += static_cast<size_t>(written);
  }
  waiting_.clear();
}

}  // namespace tandem
