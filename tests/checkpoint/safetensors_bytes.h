// Files of the format, made by hand.
#pragma once

#include <cstdint>
#include <string>

namespace tandem::tests {

inline std::string with_length(uint64_t length, const std::string& rest) {
  return std::string(reinterpret_cast<const char*>(&length), 8) + rest;
}

inline std::string file_of(const std::string& header, const std::string& data = "") {
  return with_length(header.size(), header + data);
}

// The entry of one tensor.
inline std::string entry(const std::string& name, const std::string& dtype,
                         const std::string& shape, const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

}  // namespace tandem::tests
