#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <unordered_map>

#include "data/corpus/checksum64.h"
#include "data/corpus/index_format.h"
#include "tandem/error.h"
#include "util/atomic_file.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

class StringPool {
 public:
  // Equal strings are kept once: speakers and languages repeat.
  uint64_t add(const std::string& text) {
    const auto [at, fresh] = known_.try_emplace(text, 0);
    if (!fresh) return at->second;
    const uint64_t begin = pool_.size();
    if (text.size() > longest_string || begin + text.size() >= largest_pool) {
      throw Error(ErrorKind::data,
                  fmt::format("a text of {} bytes does not fit into the index; the longest has {}",
                              text.size(), longest_string));
    }
    pool_ += text;
    return at->second = begin << 24 | text.size();
  }
  const std::string& bytes() const { return pool_; }

 private:
  std::unordered_map<std::string, uint64_t> known_;
  std::string pool_;
};

template <class T>
std::string column(const std::vector<Clip>& clips, T Clip::*member) {
  std::string bytes(clips.size() * sizeof(T), '\0');
  for (size_t i = 0; i < clips.size(); ++i) {
    std::memcpy(bytes.data() + i * sizeof(T), &(clips[i].*member), sizeof(T));
  }
  return bytes;
}

std::string column(const std::vector<Clip>& clips, std::string Clip::*member, StringPool& pool) {
  std::string bytes(clips.size() * sizeof(uint64_t), '\0');
  for (size_t i = 0; i < clips.size(); ++i) {
    const uint64_t text = pool.add(clips[i].*member);
    std::memcpy(bytes.data() + i * sizeof text, &text, sizeof text);
  }
  return bytes;
}

uint64_t head_sum(const std::string& bytes) {
  std::string head = bytes.substr(0, index_head_bytes);
  std::memset(head.data() + offsetof(IndexHeader, sum), 0, sizeof(uint64_t));
  return checksum64(head);
}

// Relative to the index where both lie in one folder tree, so that the tree can be moved.
std::string root_beside(const std::string& index, const std::string& root) {
  const fs::path place = fs::absolute(index).lexically_normal().parent_path();
  fs::path target = fs::absolute(root).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  const fs::path relative = target.lexically_relative(place);
  bool near = !relative.empty();
  bool up = true;
  for (const fs::path& part : relative) {
    if (part != "..") up = false;
    if (part == ".." && !up) near = false;
  }
  const bool below = near && *relative.begin() != "..";
  return below || (near && up) ? relative.string() : target.string();
}

}  // namespace

std::string index_bytes(const std::vector<Clip>& clips, const std::string& root) {
  StringPool pool;
  std::string sections[section_count];
  sections[id_column] = column(clips, &Clip::id, pool);
  sections[text_column] = column(clips, &Clip::text, pool);
  sections[speaker_column] = column(clips, &Clip::speaker, pool);
  sections[language_column] = column(clips, &Clip::language, pool);
  sections[path_column] = column(clips, &Clip::path, pool);
  sections[offset_column] = column(clips, &Clip::offset);
  sections[bytes_column] = column(clips, &Clip::bytes);
  sections[modified_column] = column(clips, &Clip::modified);
  sections[frames_column] = column(clips, &Clip::frames);
  sections[first_frame_column] = column(clips, &Clip::first_frame);
  sections[fingerprint_column] = column(clips, &Clip::fingerprint);
  sections[sample_rate_column] = column(clips, &Clip::sample_rate);
  sections[channels_column] = column(clips, &Clip::channels);
  sections[tokens_column] = column(clips, &Clip::tokens);
  sections[part_column] = column(clips, &Clip::part);
  IndexHeader header = {};
  header.root = pool.add(root);
  sections[string_pool] = pool.bytes();

  std::string bytes(index_head_bytes, '\0');
  for (uint32_t section = 0; section < section_count; ++section) {
    const IndexEntry entry{bytes.size(), sections[section].size(), 0};
    std::memcpy(bytes.data() + sizeof header + section * sizeof entry, &entry, sizeof entry);
    bytes += sections[section];
    bytes.resize((bytes.size() + 7) / 8 * 8, '\0');
  }
  std::memcpy(header.magic, index_magic, sizeof index_magic);
  header.byte_order = index_byte_order;
  header.version = index_version;
  header.file_bytes = bytes.size();
  header.clips = clips.size();
  header.sections = section_count;
  std::memcpy(bytes.data(), &header, sizeof header);
  seal_index(bytes);
  return bytes;
}

bool seal_index(std::string& bytes) {
  if (bytes.size() < index_head_bytes) return false;
  for (uint32_t section = 0; section < section_count; ++section) {
    IndexEntry entry;
    char* place = bytes.data() + sizeof(IndexHeader) + section * sizeof entry;
    std::memcpy(&entry, place, sizeof entry);
    if (entry.offset > bytes.size() || entry.bytes > bytes.size() - entry.offset) return false;
    entry.sum = checksum64(bytes.data() + entry.offset, entry.bytes);
    std::memcpy(place, &entry, sizeof entry);
  }
  const uint64_t sum = head_sum(bytes);
  std::memcpy(bytes.data() + offsetof(IndexHeader, sum), &sum, sizeof sum);
  return true;
}

bool looks_like_index(const std::string& path) {
  char start[sizeof index_magic] = {};
  std::ifstream file(path, std::ios::binary);
  return file.read(start, sizeof start) && std::memcmp(start, index_magic, sizeof start) == 0;
}

void ClipIndex::write(const std::string& path, const std::vector<Clip>& clips,
                      const std::string& root) {
  write_file_atomically(path, index_bytes(clips, root_beside(path, root)));
}

}  // namespace tandem
