// SHA-256 and MD5 of files, to compare a copied model with what its publisher wrote down.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace tandem {

enum class DigestKind { md5, sha256 };

std::string digest_of(std::string_view bytes, DigestKind kind);  // lower-case hexadecimal
// Reads the file once, in pieces. Throws Error(io).
std::string digest_of_file(const std::filesystem::path& path, DigestKind kind);

}  // namespace tandem
