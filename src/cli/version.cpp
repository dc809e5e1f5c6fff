#include <fmt/format.h>

#include "cli/command.h"
#include "device/torch_errors.h"
#include "util/log.h"

namespace tandem {

Command version_command() {
  return {.name = "version",
          .summary = "version, build, LibTorch, CUDA, compiler",
          .rest = "",
          .details = "",
          .settings = 0,
          .chooses_devices = false,
          .options = {},
          .run = [](const Arguments&) {
            print(fmt::format(
                "tandem {}\n  build     {}\n  LibTorch  {}\n  CUDA      {}\n  compiler  {} {}",
                TANDEM_VERSION, TANDEM_BUILD_TYPE, torch_versions().torch, TANDEM_CUDA_BUILT_WITH,
#ifdef __clang__
                "clang",
#else
                              "g++",
#endif
                __VERSION__));
            return 0;
          }};
}

}  // namespace tandem
