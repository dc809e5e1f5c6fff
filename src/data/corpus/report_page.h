// report.html: one file that needs no network and opens from the disk.
#pragma once

#include <string>

#include "data/corpus/corpus_report.h"

namespace tandem {

// `page` is where the file will stand: links to sounds are relative to its folder.
std::string report_page(const CorpusSummary& summary, const Dataset& dataset, const Scan& scan,
                        const std::string& page);

}  // namespace tandem
