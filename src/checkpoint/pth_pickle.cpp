#include "checkpoint/pth_pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "checkpoint/pth_format.h"

namespace tandem {
namespace {

// Of a trainer's checkpoint with its optimizer: some 100,000 nodes.
constexpr size_t most_nodes = 2'000'000;
constexpr size_t longest_name = 512;           // of a class or function with its module
constexpr uint64_t most_name_bytes = 4 << 20;  // of all those put together here

}  // namespace

Pickle::Pickle(std::string_view bytes, std::string name_for_errors)
    : bytes_(bytes), name_(std::move(name_for_errors)) {
  run();
}

void Pickle::run() {
  if (take(2) != std::string_view("\x80\x02", 2)) {
    const char version = bytes_[1];
    if (bytes_[0] != '\x80' || version < 2 || version > 5) {
      refuse("its pickle does not begin with a protocol from 2 to 5");
    }
  }
  while (step()) {
  }
  if (stack_.size() != 1 || !marks_.empty()) refuse("its pickle does not end with one value");
  root_ = stack_.back();
}

void Pickle::refuse(const std::string& why) const { refuse_pth(name_, why); }

std::string_view Pickle::take(uint64_t count) {
  if (count > bytes_.size() - position_) throw Ended{};
  const std::string_view part = bytes_.substr(position_, count);
  position_ += count;
  return part;
}

std::string_view Pickle::take_line() {
  const size_t end = bytes_.substr(position_, longest_name + 1).find('\n');
  if (end == bytes_.npos) {
    if (bytes_.size() - position_ <= longest_name) throw Ended{};
    refuse("its pickle names a class with more than 512 letters");
  }
  const std::string_view line = take(end);
  take(1);
  return line;
}

template <class T>
T Pickle::take_number() {
  T number;
  std::memcpy(&number, take(sizeof(T)).data(), sizeof(T));
  return number;
}

PickleIndex Pickle::add(PickleNode node) {
  if (nodes_.size() >= most_nodes)
    refuse(fmt::format("its pickle builds more than {} values", most_nodes));
  nodes_.push_back(node);
  return static_cast<PickleIndex>(nodes_.size() - 1);
}

PickleIndex Pickle::add_items(PickleKind kind, std::vector<PickleIndex> items) {
  PickleNode node{.kind = kind};
  node.items = items_.size();
  const PickleIndex index = add(node);
  items_.push_back(std::move(items));
  return index;
}

PickleIndex Pickle::pop() {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= floor) refuse("its pickle takes a value from an empty stack");
  const PickleIndex index = stack_.back();
  stack_.pop_back();
  return index;
}

std::vector<PickleIndex> Pickle::pop_to_mark() {
  if (marks_.empty()) refuse("its pickle goes back to a mark it never set");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<PickleIndex> items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

std::string_view Pickle::keep(std::string text) {
  if (text.size() > longest_name) refuse("its pickle names a class with more than 512 letters");
  const auto [place, is_new] = kept_.insert(std::move(text));
  if (is_new) kept_bytes_ += place->size() + 64;
  if (kept_bytes_ > most_name_bytes) refuse("its pickle names too many classes");
  return *place;
}

void Pickle::push_global(std::string_view module, std::string_view name) {
  if (module.size() + name.size() > longest_name)
    refuse("its pickle names a class with more than 512 letters");
  push(add(
      {.kind = PickleKind::global, .text = keep(std::string(module) + "." + std::string(name))}));
}

void Pickle::push_long(std::string_view bytes) {
  if (bytes.size() > sizeof(int64_t)) {
    push(add({.kind = PickleKind::big_integer, .text = bytes}));
    return;
  }
  uint64_t value = 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  const bool negative = !bytes.empty() && (static_cast<unsigned char>(bytes.back()) & 0x80) != 0;
  if (negative && bytes.size() < 8) value |= ~uint64_t{0} << (8 * bytes.size());
  push(add({.kind = PickleKind::integer, .integer = static_cast<int64_t>(value)}));
}

bool Pickle::step() {
  const auto opcode = static_cast<unsigned char>(take(1)[0]);
  if (opcode == '.') return false;
  if (!step_scalar(opcode) && !step_memo(opcode)) step_build(opcode);
  return true;
}

// Numbers, texts and names.
bool Pickle::step_scalar(unsigned char opcode) {
  const auto put = [&](PickleNode node) { push(add(node)); };
  const auto integer = [&](int64_t value) { put({.kind = PickleKind::integer, .integer = value}); };
  const auto text = [&](PickleKind kind, uint64_t size) {
    put({.kind = kind, .text = take(size)});
  };
  switch (opcode) {
    case 0x80: take(1); return true;  // PROTO
    case 0x95: take(8); return true;  // FRAME: only a hint for readers of streams
    case 'N': put({}); return true;
    case 0x88: put({.kind = PickleKind::boolean, .integer = 1}); return true;
    case 0x89: put({.kind = PickleKind::boolean, .integer = 0}); return true;
    case 'K': integer(take_number<uint8_t>()); return true;
    case 'M': integer(take_number<uint16_t>()); return true;
    case 'J': integer(take_number<int32_t>()); return true;
    case 0x8a: push_long(take(take_number<uint8_t>())); return true;  // LONG1
    case 0x8b: {                                                      // LONG4
      const auto size = take_number<int32_t>();
      if (size < 0) refuse("its pickle holds a number of negative length");
      push_long(take(static_cast<uint64_t>(size)));
      return true;
    }
    case 'G': {  // big-endian
      const auto bits = __builtin_bswap64(take_number<uint64_t>());
      PickleNode node{.kind = PickleKind::real};
      node.real = std::bit_cast<double>(bits);
      put(node);
      return true;
    }
    case 0x8c: text(PickleKind::text, take_number<uint8_t>()); return true;
    case 'X': text(PickleKind::text, take_number<uint32_t>()); return true;
    case 0x8d: text(PickleKind::text, take_number<uint64_t>()); return true;
    case 'U': text(PickleKind::text, take_number<uint8_t>()); return true;  // Python 2's texts
    case 'T': text(PickleKind::text, take_number<uint32_t>()); return true;
    case 'C': text(PickleKind::bytes, take_number<uint8_t>()); return true;
    case 'B': text(PickleKind::bytes, take_number<uint32_t>()); return true;
    case 0x8e: text(PickleKind::bytes, take_number<uint64_t>()); return true;
    case 0x96: text(PickleKind::bytes, take_number<uint64_t>()); return true;  // a bytearray
    case 'c': {
      const std::string_view module = take_line();
      push_global(module, take_line());
      return true;
    }
    case 0x93: {  // STACK_GLOBAL
      const PickleNode name = node(pop()), module = node(pop());
      if (name.kind != PickleKind::text || module.kind != PickleKind::text)
        refuse("its pickle names a class by something that is no text");
      push_global(module.text, name.text);
      return true;
    }
    default: return false;
  }
}

// The memo, the stack and its marks.
bool Pickle::step_memo(unsigned char opcode) {
  const auto put = [&](uint64_t key) {
    if (stack_.empty()) refuse("its pickle remembers a value where there is none");
    memo_[key] = stack_.back();
  };
  const auto get = [&](uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) refuse("its pickle recalls a value it never remembered");
    push(found->second);
  };
  switch (opcode) {
    case 'q': put(take_number<uint8_t>()); return true;
    case 'r': put(take_number<uint32_t>()); return true;
    case 0x94: put(memo_.size()); return true;  // MEMOIZE
    case 'h': get(take_number<uint8_t>()); return true;
    case 'j': get(take_number<uint32_t>()); return true;
    case '(': marks_.push_back(stack_.size()); return true;
    case '1': pop_to_mark(); return true;
    case '2': {
      const PickleIndex top = pop();
      push(top);
      push(top);
      return true;
    }
    case '0':
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
      } else {
        pop();
      }
      return true;
    default: return false;
  }
}

}  // namespace tandem
