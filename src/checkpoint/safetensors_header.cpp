#include "checkpoint/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoint/safetensors_types.h"
#include "tandem/error.h"

namespace tandem {
namespace {

using Json = nlohmann::json;
using Entry = SafetensorsEntry;
constexpr uint64_t largest_header = 100'000'000;

// Looks through a header before its tree is built, for what the tree would not show or could not
// hold: names given twice, deep nesting. In linear time, which parsing with a callback is not.
class HeaderWatch final : public nlohmann::json_sax<Json> {
 public:
  const std::string& complaint() const { return complaint_; }

  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool key(std::string& name) override {
    if (depth_ == 1) {
      tensor_ = name;
      fields_.clear();
      return tensors_.insert(name).second || stop(fmt::format("its header names `{}` twice", name));
    }
    return depth_ > 2 || fields_.insert(name).second ||
           stop(fmt::format("its header names `{}` of `{}` twice", name, tensor_));
  }
  bool parse_error(size_t, const std::string&, const Json::exception& error) override {
    const std::string why = error.what();  // ends with the bytes last read, which may be anything
    return stop(fmt::format("its header is not JSON ({})", why.substr(0, why.find("; last read"))));
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }

 private:
  bool open() { return ++depth_ <= 3 || stop("its header is nested deeper than the format is"); }
  bool stop(std::string why) {
    complaint_ = std::move(why);
    return false;
  }
  int depth_ = 0;
  std::string complaint_, tensor_;
  std::set<std::string> tensors_, fields_;
};

class HeaderReader {
 public:
  explicit HeaderReader(const StoredBytes& bytes) : bytes_(bytes) {}

  SafetensorsHeader read() {
    const Json json = read_json();
    SafetensorsHeader header;
    header.data_offset = bytes_.size() - data_size_;
    for (const auto& [name, value] : json.items()) {
      if (name == "__metadata__") {
        header.metadata = read_metadata(value);
      } else {
        header.entries.push_back(read_entry(name, value));
      }
    }
    check_tiling(header.entries);
    return header;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}` is not a valid safetensors file: {}", bytes_.name(), why))
        .hint("the file is damaged or incomplete; use another checkpoint or copy it again");
  }

  Json read_json() {
    if (bytes_.size() < 8)
      refuse(fmt::format("it has {} bytes, less than the 8 of its length field", bytes_.size()));
    uint64_t length = 0;
    bytes_.read(0, &length, 8);
    if (length > largest_header)
      refuse(fmt::format("its header claims {} bytes, more than {}", length, largest_header));
    if (length > bytes_.size() - 8) {
      refuse(
          fmt::format("its header claims {} bytes, but only {} follow", length, bytes_.size() - 8));
    }
    const std::string text = bytes_.read(8, length);
    data_size_ = bytes_.size() - 8 - length;
    if (text.empty() || text[0] != '{') refuse("its header does not begin with `{`");
    // The parser takes a zero byte for the end of its input and would not see what follows.
    if (text.find('\0') != text.npos) refuse("its header is not JSON (it holds a zero byte)");
    HeaderWatch watch;
    if (!Json::sax_parse(text, &watch)) refuse(watch.complaint());
    return Json::parse(text);
  }

  std::map<std::string, std::string> read_metadata(const Json& value) const {
    std::map<std::string, std::string> metadata;
    if (!value.is_object()) refuse("`__metadata__` is not an object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) refuse(fmt::format("`__metadata__.{}` is not a string", key));
      metadata[key] = text.get<std::string>();
    }
    return metadata;
  }

  Entry read_entry(const std::string& name, const Json& value) const {
    const auto need = [&](bool ok, const char* what) {
      if (!ok) refuse(fmt::format("the entry of tensor `{}` {}", name, what));
    };
    // Other fields are passed over, as the reference implementation does.
    need(value.is_object() && value.contains("dtype") && value.contains("shape") &&
             value.contains("data_offsets"),
         "must have dtype, shape and data_offsets");
    need(value["dtype"].is_string(), "has a dtype that is not a string");
    Entry entry;
    entry.name = name;
    const auto type = safetensors_type(value["dtype"].get<std::string>());
    need(type.has_value(), "has an unknown dtype");
    entry.type = *type;
    need(value["shape"].is_array() && value["shape"].size() <= 64, "has no proper shape");
    uint64_t size = at::elementSize(entry.type);
    for (const Json& extent : value["shape"]) {
      need(extent.is_number_unsigned() && extent.get<uint64_t>() <= INT64_MAX,
           "has an extent that is no size");
      entry.shape.push_back(extent.get<int64_t>());
    }
    // Counted without the zeros too: LibTorch's strides overflow even where there are no elements.
    int64_t span = static_cast<int64_t>(size);
    for (const int64_t extent : entry.shape) {
      need(!__builtin_mul_overflow(span, std::max<int64_t>(extent, 1), &span),
           "has a shape too large to exist");
      size *= static_cast<uint64_t>(extent);
    }
    const Json& offsets = value["data_offsets"];
    need(offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() &&
             offsets[1].is_number_unsigned(),
         "has no proper data_offsets");
    entry.begin = offsets[0].get<uint64_t>();
    entry.end = offsets[1].get<uint64_t>();
    need(entry.begin <= entry.end && entry.end <= data_size_, "lies outside the file");
    need(entry.end - entry.begin == size, "has a size that does not fit its shape and dtype");
    return entry;
  }

  void check_tiling(std::vector<Entry>& entries) const {
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::make_pair(a.begin, a.end) < std::make_pair(b.begin, b.end);
    });
    uint64_t expected = 0;
    for (const Entry& entry : entries) {
      if (entry.begin != expected) {
        refuse(fmt::format("tensor `{}` begins at {} where {} was expected (a hole or an overlap)",
                           entry.name, entry.begin, expected));
      }
      expected = entry.end;
    }
    if (expected != data_size_) {
      refuse(fmt::format("its tensors end at {}, but the data has {} bytes", expected, data_size_));
    }
  }

  const StoredBytes& bytes_;
  uint64_t data_size_ = 0;
};

}  // namespace

SafetensorsHeader read_safetensors_header(const StoredBytes& bytes) {
  return HeaderReader(bytes).read();
}

}  // namespace tandem
