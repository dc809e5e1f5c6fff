// What the tests of the settings share: sentences of errors, files and variables that clean up.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include "config/resolve.h"
#include "config/schema.h"
#include "support/temporary_folder.h"
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
