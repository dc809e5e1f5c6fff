// Small text helpers: nearest names for suggestions, lists for sentences, strict number parsing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`.
size_t edit_distance(std::string_view a, std::string_view b);

// The closest of `candidates`, best first; only those near enough to be what was meant.
std::vector<std::string> nearest_names(std::string_view name,
                                       const std::vector<std::string>& candidates, size_t most = 3);

// " Did you mean `a` or `b`?", or "" when nothing is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

std::vector<std::string> split(std::string_view text, char separator);
std::string trim(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string lower(std::string_view text);

// The whole text as a number, or nothing. `1e-4` and `-3` are numbers; `3x`, ` 3` and `` are not.
std::optional<int64_t> parse_int(std::string_view text);
std::optional<double> parse_double(std::string_view text);

// 1536 -> "1.5 KiB"
std::string format_bytes(uint64_t bytes);
// 3725.4 -> "1h 02m", 75 -> "1m 15s", 3.25 -> "3.2s"
std::string format_seconds(double seconds);

}  // namespace tandem
