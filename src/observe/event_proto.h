// TensorBoard's events, as the bytes that its protocol buffers have on the wire (event.proto,
// summary.proto, tensor.proto). A function an event; nothing of protobuf is needed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

// A message in the making: fields in any order, each with its number.
class ProtoMessage {
 public:
  ProtoMessage& integer(int field, int64_t value);  // int32, int64, enum
  ProtoMessage& number(int field, double value);
  ProtoMessage& number(int field, float value);
  ProtoMessage& packed(int field, float value);            // a list of one
  ProtoMessage& bytes(int field, std::string_view value);  // string, bytes, message
  ProtoMessage& message(int field, const ProtoMessage& value) { return bytes(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value);
  void key(int field, int wire_type) { varint(static_cast<uint64_t>(field) << 3 | wire_type); }
  template <class Bits>
  void fixed(Bits bits);
  std::string bytes_;
};

// When and after which step. Seconds since 1970.
struct EventMoment {
  double time = 0;
  int64_t step = 0;
};

// The first event of every file.
std::string version_event(double time);
// A run (again) begins: readers drop what earlier files hold of this step and of later ones.
std::string start_event(const EventMoment& moment);

std::string scalar_event(const EventMoment& moment, std::string_view tag, double value);
// UTF-8; shown as Markdown.
std::string text_event(const EventMoment& moment, std::string_view tag, std::string_view text);

struct EventImage {
  int64_t height = 0, width = 0;
  std::string_view png;  // colours, no transparency
};
std::string image_event(const EventMoment& moment, std::string_view tag, const EventImage& image);

struct EventAudio {
  int rate = 0;
  int64_t frames = 0;
  std::string_view wav;  // one channel
};
std::string audio_event(const EventMoment& moment, std::string_view tag, const EventAudio& audio);

}  // namespace tandem
