// The pickle inside a .pth: a program for a small stack machine. This one builds numbers, texts,
// bytes, lists, tuples, dictionaries and the descriptions of tensors, and nothing else: whatever
// class or function a file names stays a name, and an object made by one is a node that says so.
//
// Note on bounds. Every step adds at most one node, and every item costs a byte of the file, so
// memory is in proportion to the pickle; what could multiply (copies of shared lists) is counted.
// Nothing recurses, so nesting costs no stack. Texts are views into the pickle's bytes, which must
// outlive this.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tandem {

enum class PickleKind : uint8_t {
  none,
  boolean,
  integer,
  big_integer,  // its little-endian bytes in `text`
  real,
  text,
  bytes,
  list,
  tuple,
  dict,     // items: key, value, key, value, …
  global,   // a class or function by name, `text` = "module.name"
  storage,  // items: of its persistent id
  tensor,   // items: the arguments of its making; `text` says which function
  object,   // anything else; `text` = the name of its class
};

using PickleIndex = uint32_t;

struct PickleNode {
  PickleKind kind = PickleKind::none;
  union {
    int64_t integer = 0;  // also boolean
    double real;
    uint64_t items;  // which list of items
  };
  std::string_view text;
};

class Pickle {
 public:
  // Runs the pickle at the front of `bytes`. Throws Error(corrupt) for one that is not well-formed,
  // too large, or would call a function that has no place in a checkpoint.
  Pickle(std::string_view bytes, std::string name_for_errors);

  PickleIndex root() const { return root_; }
  uint64_t size() const { return position_; }  // bytes it took
  const PickleNode& node(PickleIndex index) const { return nodes_[index]; }
  const std::vector<PickleNode>& nodes() const { return nodes_; }  // all it made, used or not
  const std::vector<PickleIndex>& items(const PickleNode& node) const { return items_[node.items]; }
  // Ran into the end of its bytes, rather than into a mistake. (Only while it is being made.)
  struct Ended {};

 private:
  void run();
  bool step();  // false: STOP
  void step_build(unsigned char opcode);
  bool step_scalar(unsigned char opcode);
  bool step_memo(unsigned char opcode);

  std::string_view take(uint64_t count);
  std::string_view take_line();
  template <class T>
  T take_number();

  PickleIndex add(PickleNode node);
  PickleIndex add_items(PickleKind kind, std::vector<PickleIndex> items);
  void push(PickleIndex index) { stack_.push_back(index); }
  PickleIndex pop();
  std::vector<PickleIndex> pop_to_mark();
  void push_global(std::string_view module, std::string_view name);
  void push_long(std::string_view bytes);
  void put_items(PickleIndex target, const std::vector<PickleIndex>& items, bool pairs);
  void call(bool only_makes);  // REDUCE, NEWOBJ: callable and arguments are on the stack
  PickleIndex called(const PickleNode& callable, PickleIndex arguments, bool only_makes);
  PickleIndex ordered_dict(const std::vector<PickleIndex>& arguments);
  void build();
  [[noreturn]] void refuse(const std::string& why) const;
  std::string_view keep(std::string text);

  std::string_view bytes_;
  std::string name_;
  uint64_t position_ = 0, stored_items_ = 0, kept_bytes_ = 0;
  std::vector<PickleNode> nodes_;
  std::vector<std::vector<PickleIndex>> items_;
  std::vector<PickleIndex> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, PickleIndex> memo_;
  std::unordered_set<std::string> kept_;  // names put together from two parts; never moves them
  PickleIndex root_ = 0;
};

enum class CallRule { harmless, refused };
// Whether a checkpoint may hold a call of this. `only_makes`: an object is made without its
// constructor (NEWOBJ), as classes of settings are. Nothing is called either way; a refused call is
// a sign of a file meant to do harm.
CallRule rule_of_call(std::string_view name, bool only_makes);

}  // namespace tandem
