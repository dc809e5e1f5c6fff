// The 256 bytes as printable characters, as byte-level BPE files (GPT-2) write them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

// By byte: its character in UTF-8.
const std::array<std::string, 256>& byte_characters();

// The bytes a byte-level token stands for; nothing when it holds another character.
std::optional<std::string> bytes_of_token(std::string_view token);

// `<0x41>`: the token for a byte in vocabularies with byte fallback.
std::string byte_token(unsigned char byte);
std::optional<unsigned char> byte_of_token(std::string_view token);

}  // namespace tandem
