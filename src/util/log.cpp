#include "util/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>

#include "tandem/error.h"

namespace tandem {
namespace {

LogOptions g_options;
std::atomic<ProgressHook> g_progress_hook{nullptr};

bool wants_colour(FILE* stream) {
  const char* no_colour = std::getenv("NO_COLOR");
  return isatty(fileno(stream)) && !g_options.json && (no_colour == nullptr || *no_colour == '\0');
}

// How one line looks on the terminal and where it goes: information to standard output, warnings
// and errors to standard error. Both are flushed at once so that the two streams keep their order.
class TerminalSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const bool loud = message.level >= spdlog::level::warn;
    FILE* stream = loud || g_options.reserve_stdout ? stderr : stdout;
    const ProgressHook hook = g_progress_hook.load();
    if (hook) hook(true);
    std::fflush(loud ? stdout : stderr);
    const std::string_view text(message.payload.data(), message.payload.size());
    const std::string line =
        g_options.json ? json_line(message, text) : plain_line(message, text, wants_colour(stream));
    std::fwrite(line.data(), 1, line.size(), stream);
    std::fflush(stream);
    if (hook) hook(false);
  }
  void flush_() override {}

 private:
  static bool is_interface_line(const spdlog::details::log_msg& message) {
    return std::string_view(message.logger_name.data(), message.logger_name.size()) == "interface";
  }
  static std::string plain_line(const spdlog::details::log_msg& message, std::string_view text,
                                bool coloured) {
    if (is_interface_line(message) || message.level == spdlog::level::info)
      return fmt::format("{}\n", text);
    const char* word = message.level == spdlog::level::warn    ? "warning"
                       : message.level == spdlog::level::debug ? "debug"
                                                               : "error";
    if (!coloured) return fmt::format("{}: {}\n", word, text);
    const char* colour = message.level == spdlog::level::warn    ? "33"
                         : message.level == spdlog::level::debug ? "2"
                                                                 : "31";
    return fmt::format("\033[{}m{}:\033[0m {}\n", colour, word, text);
  }
  static std::string json_line(const spdlog::details::log_msg& message, std::string_view text) {
    const auto since_epoch = message.time.time_since_epoch();
    const double seconds = std::chrono::duration<double>(since_epoch).count();
    const auto level = spdlog::level::to_string_view(message.level);
    const nlohmann::ordered_json object = {{"time", seconds},
                                           {"level", std::string(level.data(), level.size())},
                                           {"message", std::string(text)}};
    return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }
};

struct Loggers {
  std::shared_ptr<spdlog::logger> people;     // information, warnings, errors
  std::shared_ptr<spdlog::logger> interface;  // the contract's own lines
};

Loggers make_loggers(const LogOptions& options) {
  auto terminal = std::make_shared<TerminalSink>();
  terminal->set_level(options.verbosity < 0   ? spdlog::level::warn
                      : options.verbosity > 0 ? spdlog::level::debug
                                              : spdlog::level::info);
  std::vector<spdlog::sink_ptr> sinks{terminal};
  if (!options.file.empty()) {
    try {
      auto file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file, false);
      file->set_pattern("%Y-%m-%d %H:%M:%S.%e %-7l %v");
      file->set_level(spdlog::level::debug);
      sinks.push_back(file);
    } catch (const spdlog::spdlog_ex& failure) {
      throw Error(ErrorKind::io,
                  fmt::format("cannot write the log file `{}`: {}", options.file, failure.what()))
          .hint("give --log-file a path in a folder you may write to");
    }
  }
  Loggers out{std::make_shared<spdlog::logger>("tandem", sinks.begin(), sinks.end()),
              std::make_shared<spdlog::logger>("interface", sinks.begin(), sinks.end())};
  for (auto& logger : {out.people, out.interface}) {
    logger->set_level(spdlog::level::debug);
    logger->flush_on(spdlog::level::info);
  }
  return out;
}

std::mutex g_mutex;
Loggers& loggers() {
  static Loggers instance = make_loggers({});
  return instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

bool starts_with_sign(std::string_view line) {
  return line.starts_with("❌") || line.starts_with("⚠️");
}

}  // namespace

void set_up_log(const LogOptions& options) {
  Loggers fresh = make_loggers(options);
  std::lock_guard lock(g_mutex);
  g_options = options;
  loggers() = std::move(fresh);
}

void say(std::string_view line) {
  const auto level = starts_with_sign(line) ? spdlog::level::warn : spdlog::level::info;
  loggers().interface->log(level, spdlog::string_view_t(line.data(), line.size()));
}

void complain(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) loggers().interface->log(spdlog::level::err, line);
}

void print(std::string_view text) {
  std::fflush(stderr);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (text.empty() || text.back() != '\n') std::fputc('\n', stdout);
  std::fflush(stdout);
}

void log_line(LogLevel level, std::string_view text) {
  loggers().people->log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

bool terminal_wants_progress() {
  return isatty(STDERR_FILENO) && !g_options.json && g_options.verbosity >= 0;
}

bool terminal_wants_colour() { return wants_colour(stderr); }

void set_progress_hook(ProgressHook hook) { g_progress_hook = hook; }

}  // namespace tandem
