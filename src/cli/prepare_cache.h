// `tandem prepare --cache`: features of all clips, computed once.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "tandem/config.h"

namespace tandem {

struct CacheRequest {
  std::vector<std::string> kinds;  // "mels", "codes"
  std::string dvae;                // safetensors file, for codes
  int workers = 1;
};

// The request of a command line. Throws Error(usage), also for codes without a DVAE.
CacheRequest cache_request(const Arguments& arguments);

// Files that were written or brought up to date.
std::vector<std::string> make_caches(const CacheRequest& request, const std::string& index,
                                     const DataConfig& settings);

}  // namespace tandem
