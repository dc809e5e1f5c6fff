#include "observe/event_proto.h"

#include <bit>

namespace tandem {
namespace {

// Numbers of fields and of enumerations, by message.
namespace event {
constexpr int wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7;
}
namespace summary {
constexpr int value = 1;
}
namespace value {
constexpr int tag = 1, image = 4, audio = 6, tensor = 8, metadata = 9;
}
namespace metadata {
constexpr int plugin_data = 1, data_class = 4;
constexpr int plugin_name = 1;
constexpr int class_scalar = 1, class_tensor = 2;
}  // namespace metadata
namespace tensor {
constexpr int dtype = 1, shape = 2, float_val = 5, string_val = 8;
constexpr int dimension = 2, size = 1;
constexpr int type_float = 1, type_string = 7;
}  // namespace tensor

ProtoMessage at(const EventMoment& moment) {
  ProtoMessage message;
  message.number(event::wall_time, moment.time).integer(event::step, moment.step);
  return message;
}

ProtoMessage plugin(std::string_view name, int data_class) {
  ProtoMessage data, message;
  data.bytes(metadata::plugin_name, name);
  message.message(metadata::plugin_data, data).integer(metadata::data_class, data_class);
  return message;
}

std::string event_of(const EventMoment& moment, const ProtoMessage& one_value) {
  ProtoMessage values;
  values.message(summary::value, one_value);
  return at(moment).message(event::summary, values).bytes();
}

}  // namespace

void ProtoMessage::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
  bytes_ += static_cast<char>(value);
}

template <class Bits>
void ProtoMessage::fixed(Bits bits) {
  for (size_t byte = 0; byte < sizeof bits; ++byte) bytes_ += static_cast<char>(bits >> (8 * byte));
}

ProtoMessage& ProtoMessage::integer(int field, int64_t value) {
  key(field, 0);
  varint(static_cast<uint64_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::number(int field, double value) {
  key(field, 1);
  fixed(std::bit_cast<uint64_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::number(int field, float value) {
  key(field, 5);
  fixed(std::bit_cast<uint32_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::packed(int field, float value) {
  key(field, 2);
  varint(sizeof value);
  fixed(std::bit_cast<uint32_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::bytes(int field, std::string_view value) {
  key(field, 2);
  varint(value.size());
  bytes_ += value;
  return *this;
}

std::string version_event(double time) {
  ProtoMessage message;
  message.number(event::wall_time, time).bytes(event::file_version, "brain.Event:2");
  return message.bytes();
}

std::string start_event(const EventMoment& moment) {
  constexpr int status = 1, start = 1;
  ProtoMessage log;
  log.integer(status, start);
  return at(moment).message(event::session_log, log).bytes();
}

std::string scalar_event(const EventMoment& moment, std::string_view tag, double number) {
  ProtoMessage tensor, one;
  tensor.integer(tensor::dtype, tensor::type_float)
      .message(tensor::shape, {})
      .packed(tensor::float_val, static_cast<float>(number));
  one.bytes(value::tag, tag)
      .message(value::tensor, tensor)
      .message(value::metadata, plugin("scalars", metadata::class_scalar));
  return event_of(moment, one);
}

std::string text_event(const EventMoment& moment, std::string_view tag, std::string_view text) {
  ProtoMessage dimension, shape, tensor, one;
  dimension.integer(tensor::size, 1);
  shape.message(tensor::dimension, dimension);
  tensor.integer(tensor::dtype, tensor::type_string)
      .message(tensor::shape, shape)
      .bytes(tensor::string_val, text);
  one.bytes(value::tag, tag)
      .message(value::tensor, tensor)
      .message(value::metadata, plugin("text", metadata::class_tensor));
  return event_of(moment, one);
}

std::string image_event(const EventMoment& moment, std::string_view tag, const EventImage& image) {
  constexpr int height = 1, width = 2, colourspace = 3, encoded = 4, rgb = 3;
  ProtoMessage picture, one;
  picture.integer(height, image.height)
      .integer(width, image.width)
      .integer(colourspace, rgb)
      .bytes(encoded, image.png);
  one.bytes(value::tag, tag).message(value::image, picture);
  return event_of(moment, one);
}

std::string audio_event(const EventMoment& moment, std::string_view tag, const EventAudio& audio) {
  constexpr int rate = 1, channels = 2, frames = 3, encoded = 4, content_type = 5;
  ProtoMessage sound, one;
  sound.number(rate, static_cast<float>(audio.rate))
      .integer(channels, 1)
      .integer(frames, audio.frames)
      .bytes(encoded, audio.wav)
      .bytes(content_type, "audio/wav");
  one.bytes(value::tag, tag).message(value::audio, sound);
  return event_of(moment, one);
}

}  // namespace tandem
