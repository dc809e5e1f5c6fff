#include <algorithm>
#include <iterator>

#include "checkpoint/pth_pickle.h"

namespace tandem {
namespace {

// Modules whose functions and classes start programs, open connections, or run code.
constexpr std::string_view acting_modules[] = {"os",
                                               "posix",
                                               "nt",
                                               "subprocess",
                                               "sys",
                                               "runpy",
                                               "shutil",
                                               "socket",
                                               "importlib",
                                               "ctypes",
                                               "pty",
                                               "commands",
                                               "code",
                                               "codeop",
                                               "timeit",
                                               "pickle",
                                               "marshal",
                                               "_pickle",
                                               "asyncio",
                                               "webbrowser",
                                               "multiprocessing",
                                               "threading",
                                               "signal",
                                               "bdb",
                                               "pdb",
                                               "profile",
                                               "cProfile",
                                               "site",
                                               "pip",
                                               "pydoc",
                                               "urllib",
                                               "http",
                                               "requests",
                                               "ftplib",
                                               "smtplib",
                                               "tempfile",
                                               "io",
                                               "_io",
                                               "types",
                                               "operator",
                                               "_operator",
                                               "inspect",
                                               "gc",
                                               "builtins",
                                               "__builtin__",
                                               "__main__.__builtins__",
                                               "posixpath",
                                               "imp",
                                               "atexit"};

// Functions, and classes written in small letters, that data is made of.
constexpr std::string_view plain_calls[] = {
    "copyreg._reconstructor",
    "copy_reg._reconstructor",
    "copyreg.__newobj__",
    "copy_reg.__newobj__",
    "collections.defaultdict",
    "collections.deque",
    "_codecs.encode",
    "datetime.datetime",
    "datetime.date",
    "datetime.time",
    "datetime.timedelta",
    "datetime.timezone",
    "functools.partial",
    "re._compile",
    "torch.device",
    "torch.dtype",
    "torch.serialization._get_layout",
    "numpy.dtype",
    "numpy.ndarray",
    "numpy.core.multiarray.scalar",
    "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray.scalar",
    "numpy._core.multiarray._reconstruct",
    "numpy.core.numeric._frombuffer",
    "numpy._core.numeric._frombuffer",
    "numpy.random._pickle.__randomstate_ctor",
    "numpy.random._pickle.__generator_ctor",
    "numpy.random._pickle.__bit_generator_ctor",
};

constexpr std::string_view plain_builtins[] = {"set",     "frozenset", "list",  "dict",  "tuple",
                                               "int",     "float",     "bool",  "str",   "bytes",
                                               "complex", "bytearray", "slice", "range", "object"};

template <size_t N>
bool among(const std::string_view (&list)[N], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

}  // namespace

CallRule rule_of_call(std::string_view name, bool only_makes) {
  if (among(plain_calls, name) || name.starts_with("torch._utils._rebuild")) {
    return CallRule::harmless;
  }
  const size_t dot = name.rfind('.');
  const std::string_view module = name.substr(0, dot == name.npos ? 0 : dot);
  const std::string_view last = dot == name.npos ? name : name.substr(dot + 1);
  if (module == "builtins" || module == "__builtin__") {
    return among(plain_builtins, last) ? CallRule::harmless : CallRule::refused;
  }
  if (among(acting_modules, name.substr(0, name.find('.')))) return CallRule::refused;
  if (only_makes) return CallRule::harmless;
  // What is left: classes of somebody's settings, and functions nobody needs in a checkpoint.
  const bool is_class = !last.empty() && last[0] >= 'A' && last[0] <= 'Z';
  return is_class ? CallRule::harmless : CallRule::refused;
}

}  // namespace tandem
