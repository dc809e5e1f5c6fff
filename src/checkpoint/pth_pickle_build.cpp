// The steps of a pickle that put values together.
#include <fmt/format.h>

#include "checkpoint/pth_format.h"
#include "checkpoint/pth_pickle.h"

namespace tandem {

void Pickle::step_build(unsigned char opcode) {
  const auto tuple_of = [&](size_t count) {
    std::vector<PickleIndex> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    push(add_items(PickleKind::tuple, std::move(items)));
  };
  switch (opcode) {
    case ']': push(add_items(PickleKind::list, {})); return;
    case ')': push(add_items(PickleKind::tuple, {})); return;
    case '}': push(add_items(PickleKind::dict, {})); return;
    case 0x8f: push(add_items(PickleKind::list, {})); return;  // a set
    case 0x85: tuple_of(1); return;
    case 0x86: tuple_of(2); return;
    case 0x87: tuple_of(3); return;
    case 't': push(add_items(PickleKind::tuple, pop_to_mark())); return;
    case 'l': push(add_items(PickleKind::list, pop_to_mark())); return;
    case 0x91: push(add_items(PickleKind::list, pop_to_mark())); return;  // a frozen set
    case 'd': {
      const std::vector<PickleIndex> items = pop_to_mark();
      const PickleIndex dict = add_items(PickleKind::dict, {});
      put_items(dict, items, true);
      push(dict);
      return;
    }
    case 'a':
    case 's': {
      std::vector<PickleIndex> items{pop()};
      if (opcode == 's') items.insert(items.begin(), pop());
      const PickleIndex target = pop();
      put_items(target, items, opcode == 's');
      push(target);
      return;
    }
    case 'e':
    case 'u':
    case 0x90: {  // ADDITEMS
      const std::vector<PickleIndex> items = pop_to_mark();
      const PickleIndex target = pop();
      put_items(target, items, opcode == 'u');
      push(target);
      return;
    }
    case 'Q': {
      const PickleNode id = node(pop());
      if (id.kind != PickleKind::tuple)
        refuse("its pickle refers to something outside by no tuple");
      push(add({.kind = PickleKind::storage, .items = id.items}));
      return;
    }
    case 'R': call(false); return;
    case 0x81: call(true); return;  // NEWOBJ
    case 0x92: {                    // NEWOBJ_EX: with named arguments, which no object here needs
      pop();
      call(true);
      return;
    }
    case 'b': build(); return;
    default:
      refuse(fmt::format("its pickle holds the step 0x{:02x} at byte {}, which no checkpoint needs",
                         opcode, position_ - 1));
  }
}

void Pickle::put_items(PickleIndex target, const std::vector<PickleIndex>& items, bool pairs) {
  const PickleNode& into = nodes_[target];
  if (into.kind == PickleKind::object) return;  // what an unread object is told is not kept
  if (into.kind != (pairs ? PickleKind::dict : PickleKind::list))
    refuse("its pickle adds items to something that holds none");
  if (pairs && items.size() % 2 != 0) refuse("its pickle has a key without a value");
  stored_items_ += items.size();
  if (stored_items_ > 4 * bytes_.size() + 1024)
    refuse("its pickle copies its own lists again and again");
  std::vector<PickleIndex>& place = items_[into.items];
  place.insert(place.end(), items.begin(), items.end());
}

void Pickle::call(bool only_makes) {
  const PickleIndex arguments = pop(), callable = pop();
  if (nodes_[arguments].kind != PickleKind::tuple)
    refuse("its pickle calls something with arguments that are no tuple");
  push(called(nodes_[callable], arguments, only_makes));
}

PickleIndex Pickle::called(const PickleNode& callable, PickleIndex arguments, bool only_makes) {
  if (callable.kind != PickleKind::global) {
    refuse("its pickle calls a value that is no class or function");
  }
  const std::string_view name = callable.text;
  const uint64_t items = nodes_[arguments].items;
  if (name == "collections.OrderedDict" || name == "collections.defaultdict") {
    return ordered_dict(name == "collections.OrderedDict" ? items_[items]
                                                          : std::vector<PickleIndex>());
  }
  if (name == "torch._utils._rebuild_tensor_v2" || name == "torch._utils._rebuild_tensor_v3" ||
      name == "torch._utils._rebuild_tensor") {
    return add({.kind = PickleKind::tensor, .items = items, .text = name});
  }
  if (name.starts_with("torch._utils._rebuild_parameter") || name == "torch.Size") {
    if (items_[items].empty()) refuse(fmt::format("its pickle makes a `{}` of nothing", name));
    return items_[items][0];
  }
  if (rule_of_call(name, only_makes) == CallRule::refused)
    refuse(fmt::format("its pickle would call `{}`, which no checkpoint needs", quotable(name)));
  // `copyreg._reconstructor(Class, …)` makes an object of Class.
  std::string_view class_name = name;
  if (name.ends_with("._reconstructor") && !items_[items].empty()) {
    const PickleNode& made = nodes_[items_[items][0]];
    if (made.kind == PickleKind::global) class_name = made.text;
    if (rule_of_call(class_name, true) == CallRule::refused)
      refuse(fmt::format("its pickle would make a `{}`, which no checkpoint needs",
                         quotable(class_name)));
  }
  return add({.kind = PickleKind::object, .text = class_name});
}

// OrderedDict(), or OrderedDict([[key, value], …]) as Python 2 wrote it.
PickleIndex Pickle::ordered_dict(const std::vector<PickleIndex>& arguments) {
  std::vector<PickleIndex> items;
  if (!arguments.empty()) {
    const PickleNode& pairs = nodes_[arguments[0]];
    if (pairs.kind != PickleKind::list && pairs.kind != PickleKind::tuple)
      refuse("its pickle makes a dictionary of something that is no list");
    stored_items_ += items_[pairs.items].size();
    for (const PickleIndex index : items_[pairs.items]) {
      const PickleNode& pair = nodes_[index];
      const bool fits = (pair.kind == PickleKind::list || pair.kind == PickleKind::tuple) &&
                        items_[pair.items].size() == 2;
      if (!fits) refuse("its pickle makes a dictionary of something that is no pair");
      items.insert(items.end(), items_[pair.items].begin(), items_[pair.items].end());
    }
  }
  const PickleIndex dict = add_items(PickleKind::dict, {});
  put_items(dict, items, true);
  return dict;
}

// Attributes of an object. Those of a dictionary (a state's `_metadata`) say nothing needed here.
void Pickle::build() {
  pop();
  if (stack_.empty()) refuse("its pickle fills an object where there is none");
  const PickleKind kind = nodes_[stack_.back()].kind;
  if (kind != PickleKind::object && kind != PickleKind::dict && kind != PickleKind::tensor)
    refuse("its pickle fills a value that is no object");
}

}  // namespace tandem
