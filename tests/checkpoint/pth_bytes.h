// .pth files made by hand: steps of a pickle, and zip archives that may lie.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::tests {

template <class T>
std::string raw(T number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof number);
}

inline std::string text_step(const std::string& text) {
  return "X" + raw(static_cast<uint32_t>(text.size())) + text;
}
inline std::string number_step(int64_t number) { return "\x8a\x08" + raw(number); }
inline std::string tuple_step(const std::vector<int64_t>& numbers) {
  std::string steps = "(";
  for (const int64_t number : numbers) steps += number_step(number);
  return steps + "t";
}
inline std::string pickle_of(const std::string& steps) { return "\x80\x02" + steps + "."; }

struct TensorSteps {
  std::string storage = "FloatStorage", key = "0";
  int64_t elements = 4, offset = 0;
  std::vector<int64_t> shape = {4}, strides = {1};
  std::string steps() const {
    return "ctorch._utils\n_rebuild_tensor_v2\n((" + text_step("storage") + "ctorch\n" + storage +
           "\n" + text_step(key) + text_step("cpu") + number_step(elements) + "tQ" +
           number_step(offset) + tuple_step(shape) + tuple_step(strides) +
           "\x89"
           "ccollections\nOrderedDict\n)RtR";
  }
};

struct Member {
  std::string name, bytes;
  uint16_t method = 0, flags = 0;
  std::string local_name = {};  // another one in the member's own header
  int64_t size_in_directory = -1;
  int64_t offset_in_directory = -1;
};

inline std::string zip_of(const std::vector<Member>& members) {
  std::string file, directory;
  const auto common = [](const Member& member, uint32_t size, const std::string& name) {
    return raw<uint16_t>(20) + raw(member.flags) + raw(member.method) + raw<uint32_t>(0) +
           raw<uint32_t>(0) + raw(size) + raw(size) + raw(static_cast<uint16_t>(name.size())) +
           raw<uint16_t>(0);
  };
  for (const Member& member : members) {
    const std::string& local = member.local_name.empty() ? member.name : member.local_name;
    const auto size = static_cast<uint32_t>(member.bytes.size());
    const auto told =
        member.size_in_directory < 0 ? size : static_cast<uint32_t>(member.size_in_directory);
    const auto offset = member.offset_in_directory < 0
                            ? static_cast<uint32_t>(file.size())
                            : static_cast<uint32_t>(member.offset_in_directory);
    file += "PK\x03\x04" + common(member, size, local) + local + member.bytes;
    directory += "PK\x01\x02" + raw<uint16_t>(20) + common(member, told, member.name) +
                 raw<uint16_t>(0) + raw<uint32_t>(0) + raw<uint32_t>(0) + raw(offset) + member.name;
  }
  const auto count = static_cast<uint16_t>(members.size());
  return file + directory + "PK\x05\x06" + raw<uint32_t>(0) + raw(count) + raw(count) +
         raw(static_cast<uint32_t>(directory.size())) + raw(static_cast<uint32_t>(file.size())) +
         raw<uint16_t>(0);
}

// A whole file with this pickle and one storage of four floats, `0`.
inline std::string pth_of(const std::string& steps) {
  return zip_of({{"a/data.pkl", pickle_of(steps)},
                 {"a/byteorder", "little"},
                 {"a/data/0", std::string(16, 'x')},
                 {"a/version", "3\n"}});
}
// {"t": TENSOR}
inline std::string pth_of(const TensorSteps& tensor) {
  return pth_of("}" + text_step("t") + tensor.steps() + "s");
}

}  // namespace tandem::tests
