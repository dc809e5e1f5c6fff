// What the tests of the settings share: sentences of errors, files and variables that clean up.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>

#include "config/resolve.h"
#include "config/schema.h"
#include "tandem/error.h"

namespace tandem {

// The sentence of the Error that `action` throws; the test fails when it throws none or another
// kind.
inline std::string sentence_of(const std::function<void()>& action,
                               ErrorKind kind = ErrorKind::config) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.kind()), std::string(to_string(kind))) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tandem_config_XXXXXX").string();
    if (!mkdtemp(name.data())) ADD_FAILURE() << "no temporary folder";
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;

  std::string path() const { return path_.string(); }
  // Writes a file, making its folders; gives its path.
  std::string file(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

 private:
  std::filesystem::path path_;
};

// An environment variable, put back at the end of the scope.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() { before_ ? setenv(name_.c_str(), before_->c_str(), 1) : unsetenv(name_.c_str()); }
  Variable(const Variable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

// Base of the tests that use the presets and groups of the repository.
class ShippedConfigs : public ::testing::Test {
 protected:
  Variable folder_{"TANDEM_CONFIG_DIR", TANDEM_SOURCE_DIR "/configs"};
};

inline Resolved resolve_overrides(std::vector<std::string> overrides) {
  return resolve({.overrides = std::move(overrides), .use_environment = false});
}

inline Resolved resolve_file(const std::string& path, std::vector<std::string> overrides = {}) {
  return resolve(
      {.config_file = path, .overrides = std::move(overrides), .use_environment = false});
}

inline void expect_equal(const Config& a, const Config& b) {
  for (const Setting& setting : settings()) {
    EXPECT_EQ(setting.get(a), setting.get(b)) << setting.key << ": " << format_value(setting.get(a))
                                              << " and " << format_value(setting.get(b));
  }
}

}  // namespace tandem
