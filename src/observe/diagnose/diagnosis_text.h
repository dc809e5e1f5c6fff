// A diagnosis for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "observe/diagnose/diagnosis.h"

namespace tandem {

// What was measured, a line a subject.
std::string describe(const Figures& figures, const Circumstances& now);
// From "Verdict: …" on. `command`: the whole line to try; empty: there is nothing to try, or what
// another program does (Remedy::outside).
std::string describe(const Diagnosis& diagnosis, const std::string& command);

// `verdict`, `sentence`, `evidence`, `expected_gain`, `command`, `settings`, `named`, `figures`,
// and `named_figures`: the figure of every verdict, so that two documents can be compared.
nlohmann::ordered_json to_json(const Diagnosis& diagnosis, const std::string& command,
                               const Figures& figures, const Circumstances& now);

}  // namespace tandem
