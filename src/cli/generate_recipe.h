// All that decides which clips come out of a run, in words: two runs with the same recipe make the
// same clips, whatever the batch, the devices, the split or the shards.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/generate_plan.h"

namespace tandem {

// The model and how it computes: name, a checksum over parts of its files, precision, cache.
std::string model_recipe(const GenerateRequest& request, const GeneratePlan& plan);

// That, the captions, the length, the sampling, the seed and the format.
nlohmann::json run_recipe(const GenerateRequest& request, const GeneratePlan& plan);

}  // namespace tandem
