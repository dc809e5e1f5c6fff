// Type, range and choices of one setting's value.
#pragma once

#include <string>
#include <string_view>

#include "config/schema.h"

namespace tandem {

// "a whole number from 1 to 1000000", "one of `fp32`, `tf32`, …", "true or false", "text or null"
std::string expected(const Setting& setting);

// `value` as the setting's own type, ready for Setting::set. Throws Error(config), with `place` (a
// file and line, a flag, a variable, an override) in the sentence, when it does not fit.
Value checked_value(const Setting& setting, const Value& value, std::string_view place);

// Checks a Config that was filled in C++. Throws Error(config) for the first member out of range.
void validate(const Config& config);

}  // namespace tandem
