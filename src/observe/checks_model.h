// A model's folder, XTTS or MusicGen: are all files there and whole, do the weights hold every
// part, and are the files those their publisher hashed. Weights are not loaded; with known hashes
// they are read once.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "observe/checks.h"
#include "observe/doctor_digest.h"

namespace tandem {

std::vector<Check> check_model_folder(const std::filesystem::path& folder);

// A file of the folder and the hash somebody wrote down for it.
struct KnownHash {
  std::filesystem::path file;
  DigestKind kind = DigestKind::sha256;
  std::string digest;  // lower-case hexadecimal
  std::string from;  // who says so: "SHA256SUMS", "the download's record", "the cache's file name"
};

// From lists (SHA256SUMS, MD5SUMS and names like them), a file's own (model.pth.sha256), Hugging
// Face's record of a download (.cache/huggingface/download/*.metadata) and its cache, whose files
// are named by their hash. Coqui's hash.md5 names a release, not a file, and is passed over.
std::vector<KnownHash> known_hashes(const std::filesystem::path& folder);

}  // namespace tandem
