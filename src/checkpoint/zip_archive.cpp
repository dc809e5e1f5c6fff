#include "checkpoint/zip_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "checkpoint/pth_format.h"
#include "checkpoint/zip_layout.h"

namespace tandem {
namespace {

template <class T>
T number_at(std::string_view bytes, size_t place) {
  T number;
  std::memcpy(&number, bytes.data() + place, sizeof(T));
  return number;
}

struct Directory {
  uint64_t count = 0, size = 0, offset = 0;
};

struct Entry {
  ZipMember member;
  uint64_t header = 0, header_end = 0;  // of the local header
  uint16_t flags = 0;
};

class DirectoryReader {
 public:
  explicit DirectoryReader(const StoredBytes& bytes) : bytes_(bytes) {}

  std::vector<ZipMember> read() const {
    const Directory directory = find_directory();
    std::vector<Entry> entries = read_entries(directory);
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.header < b.header; });
    uint64_t free_from = 0;
    std::vector<ZipMember> members;
    for (Entry& entry : entries) {
      check_local_header(entry);
      if (entry.header < free_from) {
        refuse(
            fmt::format("its member `{}` overlaps the one before it", quotable(entry.member.name)));
      }
      const uint64_t size = entry.member.size;
      if (entry.member.offset > directory.offset || size > directory.offset - entry.member.offset)
        refuse(fmt::format("its member `{}` reaches into the archive's directory",
                           quotable(entry.member.name)));
      free_from = entry.member.offset + size;
      members.push_back(std::move(entry.member));
    }
    return members;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { refuse_pth(bytes_.name(), why); }

  // The end record: the last 22 bytes, or further up before a comment.
  Directory find_directory() const {
    constexpr uint64_t longest_comment = 0xffff;
    const uint64_t tail_size = std::min(bytes_.size(), zip_end_bytes + longest_comment);
    const std::string tail = bytes_.read(bytes_.size() - tail_size, tail_size);
    for (uint64_t place = tail_size + 1; place-- > 0;) {
      if (place + zip_end_bytes > tail_size) continue;
      if (number_at<uint32_t>(tail, place) != zip_directory_end) continue;
      if (number_at<uint16_t>(tail, place + 20) != tail_size - place - zip_end_bytes) continue;
      return read_end(tail, place, bytes_.size() - tail_size + place);
    }
    refuse("its zip archive has no end: the file is cut off");
  }

  Directory read_end(const std::string& tail, uint64_t place, uint64_t offset) const {
    if (number_at<uint16_t>(tail, place + 4) != 0 || number_at<uint16_t>(tail, place + 6) != 0)
      refuse("its zip archive is one of several parts");
    Directory found{.count = number_at<uint16_t>(tail, place + 10),
                    .size = number_at<uint32_t>(tail, place + 12),
                    .offset = number_at<uint32_t>(tail, place + 16)};
    uint64_t end = offset;
    const bool wide = found.count == 0xffff || found.size == 0xffffffff ||
                      found.offset == 0xffffffff || has_locator(offset);
    if (wide) {
      const Directory narrow = found;
      found = read_zip64_end(offset, &end);
      const bool agree = (narrow.count == 0xffff || narrow.count == found.count) &&
                         (narrow.size == 0xffffffff || narrow.size == found.size) &&
                         (narrow.offset == 0xffffffff || narrow.offset == found.offset);
      if (!agree) refuse("its two zip directories contradict each other");
    }
    if (found.offset > end || found.size != end - found.offset)
      refuse("its zip directory is not where the end of the file says");
    if (found.count > found.size / zip_entry_bytes)
      refuse(
          fmt::format("its zip directory of {} bytes claims {} members", found.size, found.count));
    return found;
  }

  bool has_locator(uint64_t end_record) const {
    if (end_record < zip64_locator_bytes) return false;
    const std::string locator = bytes_.read(end_record - zip64_locator_bytes, 4);
    return number_at<uint32_t>(locator, 0) == zip64_locator;
  }

  Directory read_zip64_end(uint64_t end_record, uint64_t* end) const {
    if (!has_locator(end_record) || end_record < zip64_locator_bytes + zip64_end_bytes)
      refuse("its zip64 directory is missing");
    const std::string locator = bytes_.read(end_record - zip64_locator_bytes, zip64_locator_bytes);
    const auto place = number_at<uint64_t>(locator, 8);
    if (place > end_record - zip64_locator_bytes - zip64_end_bytes)
      refuse("its zip64 directory lies outside the file");
    const std::string record = bytes_.read(place, zip64_end_bytes);
    if (number_at<uint32_t>(record, 0) != zip64_directory_end)
      refuse("its zip64 directory is damaged");
    *end = place;
    return {.count = number_at<uint64_t>(record, 32),
            .size = number_at<uint64_t>(record, 40),
            .offset = number_at<uint64_t>(record, 48)};
  }

  std::vector<Entry> read_entries(const Directory& directory) const {
    const std::string text = bytes_.read(directory.offset, directory.size);
    std::vector<Entry> entries;
    size_t place = 0;
    for (uint64_t i = 0; i < directory.count; ++i) {
      if (text.size() - place < zip_entry_bytes ||
          number_at<uint32_t>(text, place) != zip_directory_entry)
        refuse("its zip directory is damaged");
      const uint64_t name_size = number_at<uint16_t>(text, place + 28),
                     extra_size = number_at<uint16_t>(text, place + 30),
                     comment_size = number_at<uint16_t>(text, place + 32);
      if (text.size() - place - zip_entry_bytes < name_size + extra_size + comment_size)
        refuse("its zip directory is damaged");
      const std::string_view fixed = std::string_view(text).substr(place, zip_entry_bytes);
      const std::string_view name =
          std::string_view(text).substr(place + zip_entry_bytes, name_size);
      const std::string_view extra =
          std::string_view(text).substr(place + zip_entry_bytes + name_size, extra_size);
      entries.push_back(read_entry(fixed, name, extra));
      place += zip_entry_bytes + name_size + extra_size + comment_size;
    }
    if (place != text.size()) refuse("its zip directory holds more than its members");
    return entries;
  }

  Entry read_entry(std::string_view fixed, std::string_view name, std::string_view extra) const {
    check_name(name);
    Entry entry;
    entry.member.name = name;
    entry.flags = number_at<uint16_t>(fixed, 8);
    const auto method = number_at<uint16_t>(fixed, 10);
    if (entry.flags & 1) refuse(fmt::format("its member `{}` is encrypted", quotable(name)));
    if (method != 0) {
      refuse(fmt::format("its member `{}` is compressed; PyTorch stores members as they are",
                         quotable(name)));
    }
    uint64_t packed = number_at<uint32_t>(fixed, 20);
    entry.member.size = number_at<uint32_t>(fixed, 24);
    entry.header = number_at<uint32_t>(fixed, 42);
    read_wide_sizes(extra, name, {&entry.member.size, &packed, &entry.header});
    if (packed != entry.member.size)
      refuse(fmt::format("its member `{}` is stored with two sizes", quotable(name)));
    return entry;
  }

  // In the extra field stand, in this order, those of the three that did not fit 32 bits.
  void read_wide_sizes(std::string_view extra, std::string_view name,
                       std::initializer_list<uint64_t*> sizes) const {
    std::string_view wide;
    while (extra.size() >= 4) {
      const auto kind = number_at<uint16_t>(extra, 0), size = number_at<uint16_t>(extra, 2);
      if (size > extra.size() - 4) break;
      if (kind == zip64_extra) wide = extra.substr(4, size);
      extra.remove_prefix(4 + size);
    }
    for (uint64_t* size : sizes) {
      if (*size != 0xffffffff) continue;
      if (wide.size() < 8) refuse(fmt::format("its member `{}` has no size", quotable(name)));
      *size = number_at<uint64_t>(wide, 0);
      wide.remove_prefix(8);
    }
  }

  void check_name(std::string_view name) const {
    bool good = !name.empty() && name.find('\\') == name.npos && name.find('\0') == name.npos;
    for (size_t from = 0; good && from <= name.size();) {
      const size_t slash = std::min(name.find('/', from), name.size());
      const std::string_view part = name.substr(from, slash - from);
      good = !part.empty() && part != "." && part != "..";
      from = slash + 1;
    }
    if (!good) {
      refuse(
          fmt::format("its member `{}` has a name that leads out of the archive", quotable(name)));
    }
  }

  void check_local_header(Entry& entry) const {
    const std::string shown_name = quotable(entry.member.name);
    if (bytes_.size() < zip_local_bytes || entry.header > bytes_.size() - zip_local_bytes)
      refuse(fmt::format("its member `{}` lies outside the file", shown_name));
    const std::string fixed = bytes_.read(entry.header, zip_local_bytes);
    const uint64_t name_size = number_at<uint16_t>(fixed, 26),
                   extra_size = number_at<uint16_t>(fixed, 28);
    entry.header_end = entry.header + zip_local_bytes + name_size + extra_size;
    const bool fits = number_at<uint32_t>(fixed, 0) == zip_local_header &&
                      number_at<uint16_t>(fixed, 8) == 0 && entry.header_end <= bytes_.size() &&
                      name_size == entry.member.name.size() &&
                      bytes_.read(entry.header + zip_local_bytes, name_size) == entry.member.name;
    if (!fits) refuse(fmt::format("the header of its member `{}` is not its own", shown_name));
    // With bit 3 the sizes follow the member, and the header holds zeros.
    const auto size = number_at<uint32_t>(fixed, 22), packed = number_at<uint32_t>(fixed, 18);
    const auto agrees = [&](uint32_t here) {
      return here == entry.member.size || here == 0xffffffff || (here == 0 && (entry.flags & 8));
    };
    if (!agrees(size) || !agrees(packed))
      refuse(fmt::format("the header of its member `{}` gives another size", shown_name));
    entry.member.offset = entry.header_end;
  }

  const StoredBytes& bytes_;
};

}  // namespace

ZipArchive::ZipArchive(const StoredBytes& bytes) : members_(DirectoryReader(bytes).read()) {
  by_name_.resize(members_.size());
  std::iota(by_name_.begin(), by_name_.end(), size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [&](size_t a, size_t b) { return members_[a].name < members_[b].name; });
  for (size_t i = 1; i < by_name_.size(); ++i) {
    const std::string& name = members_[by_name_[i]].name;
    if (name == members_[by_name_[i - 1]].name)
      refuse_pth(bytes.name(), fmt::format("it has two members `{}`", quotable(name)));
  }
}

const ZipMember* ZipArchive::find(const std::string& name) const {
  const auto place = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](size_t index, const std::string& wanted) { return members_[index].name < wanted; });
  if (place == by_name_.end() || members_[*place].name != name) return nullptr;
  return &members_[*place];
}

}  // namespace tandem
