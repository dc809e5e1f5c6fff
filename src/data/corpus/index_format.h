// The bytes of an index.
//
//   header     magic, byte order mark, version, size of the file, clips, the root, sum
//   table      one entry a section: offset, bytes, sum
//   sections   the columns, each a fixed width times clips, then the pool of all strings
//
// Everything is aligned to 8 bytes. A string is one word: 40 bits where it begins in the pool, 24
// bits how long it is. The header's sum covers header and table (with the sum itself as 0), each
// entry's sum covers its section.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/corpus/clip_index.h"

namespace tandem {

constexpr char index_magic[8] = {'T', 'A', 'N', 'D', 'E', 'M', 'I', 'X'};
constexpr uint32_t index_version = 1;
constexpr uint32_t index_byte_order = 0x01020304;

enum IndexSection : uint32_t {
  id_column,
  text_column,
  speaker_column,
  language_column,
  path_column,
  offset_column,
  bytes_column,
  modified_column,
  frames_column,
  first_frame_column,
  fingerprint_column,
  sample_rate_column,
  channels_column,
  tokens_column,
  part_column,
  string_pool,
  section_count
};
constexpr uint32_t first_narrow_column = sample_rate_column;  // 4 bytes a clip from here, 8 before
constexpr uint64_t column_width(uint32_t section) { return section < first_narrow_column ? 8 : 4; }

struct IndexHeader {
  char magic[8];
  uint32_t byte_order, version;
  uint64_t file_bytes, clips, root, sections, sum;
};
struct IndexEntry {
  uint64_t offset, bytes, sum;
};
constexpr uint64_t index_head_bytes = sizeof(IndexHeader) + section_count * sizeof(IndexEntry);
static_assert(sizeof(IndexHeader) == 56 && index_head_bytes % 8 == 0);

constexpr uint64_t longest_string = (uint64_t{1} << 24) - 1;
constexpr uint64_t largest_pool = uint64_t{1} << 40;

// Throws Error(data) for a string or a pool that does not fit.
std::string index_bytes(const std::vector<Clip>& clips, const std::string& root);
// Computes all sums anew, as far as the header can be followed; false when it cannot.
bool seal_index(std::string& bytes);

// Whether a file begins as an index does, of whatever version.
bool looks_like_index(const std::string& path);

}  // namespace tandem
