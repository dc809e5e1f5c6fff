// report.html of a run: one file that shows it all, without the network: figures, curves, how busy
// the devices were, samples to look at and to listen to, what happened, the settings.
#pragma once

#include <filesystem>
#include <string>

namespace tandem {

struct ReportOptions {
  // Bytes of sound and pictures that are embedded, the newest first; what does not fit stays in
  // samples/. A third is added by the way they are embedded.
  size_t most_sample_bytes = size_t{13} << 20;
  size_t most_steps = 8;  // with samples
};

// From the folder of a run that is finished, still going, or was killed; what is missing there is
// left out. Throws Error(config) when it holds no run, Error(io).
std::string make_report(const std::filesystem::path& folder, const ReportOptions& options = {});
// Writes it to report.html in the folder; gives the path.
std::filesystem::path write_report(const std::filesystem::path& folder);

}  // namespace tandem
