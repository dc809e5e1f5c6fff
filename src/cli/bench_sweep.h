// Several values for any parameter: `--size small,big`, `--num-workers 1,4`, `batch_size=8,16`.
// Every combination is one job.
#pragma once

#include <vector>

#include "cli/bench_list.h"

namespace tandem {

// Jobs with settings resolved and checked, in the order of the combinations, the last parameter
// varying fastest. Texts that may hold commas themselves (`visible_gpus=0,1`, a file's name) are
// one value. Throws Error(usage) where the devices would have to change between jobs, or where a
// setting is swept that the benchmark does not read.
std::vector<BenchJob> bench_jobs(const Bench& bench, const Arguments& arguments);

}  // namespace tandem
