#include "checkpoint/zip_writer.h"

#include <algorithm>

#include "checkpoint/crc32.h"
#include "checkpoint/zip_layout.h"

namespace tandem {
namespace {

constexpr uint64_t alignment = 64;
constexpr uint32_t wide_mark = 0xffffffff;  // the value stands in the zip64 field
constexpr uint16_t version_needed = 45;     // zip64

template <class T>
void put(std::string& bytes, T number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

uint32_t narrow(uint64_t number) {
  return number >= wide_mark ? wide_mark : static_cast<uint32_t>(number);
}

// The fields that the header of a member and its entry in the directory share.
void put_common(std::string& bytes, uint32_t sum, uint64_t size, size_t name, size_t extra) {
  constexpr uint16_t utf8_names = 0x0800, stored = 0, time = 0, date = 0x21;  // 1980-01-01
  put(bytes, version_needed);
  put(bytes, utf8_names);
  put(bytes, stored);
  put(bytes, time);
  put(bytes, date);
  put(bytes, sum);
  put(bytes, narrow(size));
  put(bytes, narrow(size));
  put(bytes, static_cast<uint16_t>(name));
  put(bytes, static_cast<uint16_t>(extra));
}

std::string wide_field(std::initializer_list<uint64_t> numbers) {
  std::string values;
  for (const uint64_t number : numbers) put(values, number);
  std::string field;
  put(field, zip64_extra);
  put(field, static_cast<uint16_t>(values.size()));
  return field + values;
}

}  // namespace

void ZipWriter::add(const std::string& name, std::string_view bytes) {
  const Entry entry{
      .name = name, .offset = file_.size(), .size = bytes.size(), .sum = crc32(bytes)};
  std::string extra;
  if (entry.size >= wide_mark) extra = wide_field({entry.size, entry.size});
  // A field of any content fills up to the next multiple.
  const uint64_t before = entry.offset + zip_local_bytes + name.size() + extra.size() + 4;
  const auto filler = static_cast<uint16_t>((alignment - before % alignment) % alignment);
  put(extra, uint16_t{0x4246});
  put(extra, filler);
  extra.append(filler, 'Z');
  std::string header;
  put(header, zip_local_header);
  put_common(header, entry.sum, entry.size, name.size(), extra.size());
  file_.write(header + name + extra);
  file_.write(bytes);
  entries_.push_back(entry);
}

void ZipWriter::finish() {
  const uint64_t start = file_.size();
  for (const Entry& entry : entries_) {
    std::string extra;
    if (entry.size >= wide_mark && entry.offset >= wide_mark) {
      extra = wide_field({entry.size, entry.size, entry.offset});
    } else if (entry.size >= wide_mark) {
      extra = wide_field({entry.size, entry.size});
    } else if (entry.offset >= wide_mark) {
      extra = wide_field({entry.offset});
    }
    std::string record;
    put(record, zip_directory_entry);
    put(record, version_needed);  // made by
    put_common(record, entry.sum, entry.size, entry.name.size(), extra.size());
    put(record, uint16_t{0});  // comment
    put(record, uint16_t{0});  // disk
    put(record, uint16_t{0});  // internal and external attributes
    put(record, uint32_t{0});
    put(record, narrow(entry.offset));
    file_.write(record + entry.name + extra);
  }
  const uint64_t size = file_.size() - start, count = entries_.size();
  const bool wide = count >= 0xffff || size >= wide_mark || start >= wide_mark;
  std::string end;
  if (wide) {
    const uint64_t place = file_.size();
    put(end, zip64_directory_end);
    put(end, zip64_end_bytes - 12);
    put(end, version_needed);
    put(end, version_needed);
    put(end, uint64_t{0});  // disks
    for (const uint64_t number : {count, count, size, start}) put(end, number);
    put(end, zip64_locator);
    put(end, uint32_t{0});
    put(end, place);
    put(end, uint32_t{1});
  }
  put(end, zip_directory_end);
  put(end, uint32_t{0});  // disks
  put(end, static_cast<uint16_t>(std::min<uint64_t>(count, 0xffff)));
  put(end, static_cast<uint16_t>(std::min<uint64_t>(count, 0xffff)));
  put(end, narrow(size));
  put(end, narrow(start));
  put(end, uint16_t{0});  // comment
  file_.write(end);
}

}  // namespace tandem
