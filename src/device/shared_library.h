// A shared library opened at run time, with typed look-up of its functions.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <utility>

namespace tandem {

class SharedLibrary {
 public:
  explicit SharedLibrary(const std::string& name, int flags = RTLD_NOW | RTLD_LOCAL)
      : handle_(dlopen(name.c_str(), flags)) {}
  ~SharedLibrary() {
    if (handle_) dlclose(handle_);
  }
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  explicit operator bool() const { return handle_ != nullptr; }

  // nullptr when the library has no such function.
  template <class Function>
  Function* find(const char* name) const {
    return handle_ ? reinterpret_cast<Function*>(dlsym(handle_, name)) : nullptr;
  }

  // Calls `name` if it exists; `missing` otherwise.
  template <class... Args>
  int call(const char* name, Args... args) const {
    auto* function = find<int(Args...)>(name);
    return function ? function(args...) : missing;
  }
  static constexpr int missing = -1;

 private:
  void* handle_;
};

// The library an environment variable names, else the standard one.
inline std::string library_named(const char* variable, const char* standard) {
  const char* value = std::getenv(variable);
  return value && *value ? value : standard;
}
// NVML, which comes with NVIDIA's driver. Tests put a stand-in in its place.
inline std::string nvml_library() {
  return library_named("TANDEM_NVML_LIBRARY", "libnvidia-ml.so.1");
}

}  // namespace tandem
