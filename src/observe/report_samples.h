// The samples of a run, embedded into the report.
#pragma once

#include <filesystem>
#include <string>

#include "observe/report.h"

namespace tandem {

// A card for each name with its takes, the newest first; "" when there are none.
std::string samples_html(const std::filesystem::path& run, const ReportOptions& options);

}  // namespace tandem
