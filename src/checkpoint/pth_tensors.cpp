#include "checkpoint/pth_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "checkpoint/pth_format.h"

namespace tandem {
namespace {

constexpr size_t deepest = 64;            // dictionaries in dictionaries
constexpr size_t longest_path = 1024;     // letters
constexpr size_t most_dimensions = 64;    // what LibTorch takes
constexpr size_t longest_told_list = 16;  // longer lists of numbers are told by their length
constexpr size_t longest_told_text = 4096;

class Walk {
 public:
  Walk(const Pickle& pickle, uint64_t file_size, const std::string& name)
      : pickle_(pickle), name_(name), file_size_(file_size) {
    // What a file describes must not be far more than what it holds.
    budget_ = (uint64_t{32} << 20) + 32 * pickle.size();
    claim_ = (uint64_t{64} << 20) + 16 * file_size;
  }

  PthContent run() {
    visit(pickle_.root(), "", 0);
    return std::move(content_);
  }

  std::vector<PthStorage> storages() const {
    std::vector<PthStorage> found;
    for (const PickleNode& node : pickle_.nodes()) {
      if (node.kind != Kind::storage) continue;
      if (auto storage = storage_of(node, "?")) found.push_back(std::move(*storage));
    }
    return found;
  }

 private:
  using Kind = PickleKind;
  [[noreturn]] void refuse(const std::string& why) const { refuse_pth(name_, why); }

  void spend(uint64_t bytes) {
    if (bytes > budget_) refuse("its pickle describes far more than the file holds");
    budget_ -= bytes;
  }

  void visit(PickleIndex index, const std::string& path, size_t depth) {
    if (depth > deepest) refuse(fmt::format("its values are nested deeper than {}", deepest));
    if (path.size() > longest_path) refuse("its names are longer than 1024 letters");
    spend(64 + path.size());
    const PickleNode& node = pickle_.node(index);
    switch (node.kind) {
      case Kind::dict: return visit_dict(node, path, depth);
      case Kind::list:
      case Kind::tuple: return visit_list(node, path, depth);
      case Kind::tensor: return visit_tensor(node, path);
      default: tell(path, node);
    }
  }

  static std::string below(const std::string& path, const std::string& key) {
    return path.empty() ? key : path + "/" + key;
  }

  std::string key_text(const PickleNode& key) const {
    switch (key.kind) {
      case Kind::text: return std::string(key.text.substr(0, longest_path + 1));
      case Kind::integer: return std::to_string(key.integer);
      case Kind::boolean: return key.integer ? "True" : "False";
      case Kind::real: return fmt::format("{}", key.real);
      case Kind::none: return "None";
      default: return "?";
    }
  }

  // Of equal keys the last one counts, at the place of the first, as in Python.
  void visit_dict(const PickleNode& dict, const std::string& path, size_t depth) {
    const std::vector<PickleIndex>& items = pickle_.items(dict);
    spend(64 * items.size());
    std::vector<std::pair<std::string, PickleIndex>> entries;
    std::unordered_map<std::string, size_t> seen;
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      std::string key = key_text(pickle_.node(items[i]));
      spend(2 * key.size());
      const auto [place, is_new] = seen.emplace(key, entries.size());
      if (is_new) {
        entries.emplace_back(std::move(key), items[i + 1]);
      } else {
        entries[place->second].second = items[i + 1];
      }
    }
    for (const auto& [key, value] : entries) visit(value, below(path, key), depth + 1);
  }

  void visit_list(const PickleNode& list, const std::string& path, size_t depth) {
    const std::vector<PickleIndex>& items = pickle_.items(list);
    const auto is_scalar = [&](PickleIndex index) {
      return pickle_.node(index).kind <= Kind::bytes || pickle_.node(index).kind == Kind::global;
    };
    spend(items.size());
    if (items.size() > longest_told_list && std::all_of(items.begin(), items.end(), is_scalar)) {
      content_.metadata[path] = fmt::format("[{} values]", items.size());
      return;
    }
    for (size_t i = 0; i < items.size(); ++i)
      visit(items[i], below(path, std::to_string(i)), depth + 1);
  }

  void tell(const std::string& path, const PickleNode& node) {
    std::string text;
    switch (node.kind) {
      case Kind::none: text = "None"; break;
      case Kind::boolean: text = node.integer ? "True" : "False"; break;
      case Kind::integer: text = std::to_string(node.integer); break;
      case Kind::real: text = fmt::format("{}", node.real); break;
      case Kind::text: text = node.text.substr(0, longest_told_text); break;
      case Kind::global: text = node.text; break;
      case Kind::object: text = fmt::format("<{}, not read>", node.text); break;
      case Kind::bytes: text = fmt::format("<{} bytes>", node.text.size()); break;
      case Kind::big_integer: text = "<a number of more than 64 bits>"; break;
      default: text = "<not read>";
    }
    spend(text.size());
    content_.metadata[path.empty() ? "object" : path] = std::move(text);
  }

  int64_t size_of(PickleIndex index, const std::string& path, const char* what) const {
    const PickleNode& node = pickle_.node(index);
    if (node.kind != Kind::integer || node.integer < 0)
      refuse(fmt::format("its tensor `{}` has {} that is no size", quotable(path), what));
    return node.integer;
  }

  std::vector<int64_t> sizes_of(PickleIndex index, const std::string& path,
                                const char* what) const {
    const PickleNode& node = pickle_.node(index);
    if ((node.kind != Kind::tuple && node.kind != Kind::list) ||
        pickle_.items(node).size() > most_dimensions)
      refuse(fmt::format("its tensor `{}` has no proper shape", quotable(path)));
    std::vector<int64_t> sizes;
    for (const PickleIndex item : pickle_.items(node)) sizes.push_back(size_of(item, path, what));
    return sizes;
  }

  // ("storage", Class, key, place, elements[, (view key, offset, elements) or None]). Nothing where
  // its type is none of ours.
  std::optional<PthStorage> storage_of(const PickleNode& node, const std::string& path) const {
    if (node.kind != Kind::storage)
      refuse(fmt::format("its tensor `{}` has no storage", quotable(path)));
    const std::vector<PickleIndex>& items = pickle_.items(node);
    const auto kind = [&](size_t i) { return pickle_.node(items[i]).kind; };
    const bool fits = (items.size() == 5 || items.size() == 6) && kind(0) == Kind::text &&
                      pickle_.node(items[0]).text == "storage" && kind(1) == Kind::global &&
                      (kind(2) == Kind::text || kind(2) == Kind::integer);
    if (!fits) refuse(fmt::format("the storage of its tensor `{}` is damaged", quotable(path)));
    PthStorage storage;
    storage.key = key_text(pickle_.node(items[2]));
    storage.elements = size_of(items[4], path, "a storage");
    if (items.size() == 6 && kind(5) != Kind::none) {
      const PickleNode& view = pickle_.node(items[5]);
      if (view.kind != Kind::tuple || pickle_.items(view).size() != 3)
        refuse(fmt::format("the storage of its tensor `{}` is damaged", quotable(path)));
      storage.view_offset = size_of(pickle_.items(view)[1], path, "a view");
      const int64_t view_size = size_of(pickle_.items(view)[2], path, "a view");
      int64_t end = 0;
      if (__builtin_add_overflow(storage.view_offset, view_size, &end) || end > storage.elements)
        refuse(
            fmt::format("the view of its tensor `{}` reaches outside its storage", quotable(path)));
      storage.is_view = true;
      storage.elements = end;
    }
    const auto type = storage_type(pickle_.node(items[1]).text);
    if (!type) return std::nullopt;
    storage.type = *type;
    return storage;
  }

  void visit_tensor(const PickleNode& node, const std::string& path) {
    const std::vector<PickleIndex>& arguments = pickle_.items(node);
    const std::string name = path.empty() ? "tensor" : path;
    const bool third = node.text.ends_with("_v3");
    if (arguments.size() < (third ? 7 : 4))
      refuse(fmt::format("its tensor `{}` is described incompletely", quotable(name)));
    const auto storage = storage_of(pickle_.node(arguments[0]), name);
    PthTensor tensor;
    tensor.name = name;
    tensor.offset = size_of(arguments[1], name, "an offset");
    tensor.shape = sizes_of(arguments[2], name, "an extent");
    tensor.strides = sizes_of(arguments[3], name, "a stride");
    spend(256 + 16 * tensor.shape.size());
    auto type = storage ? std::optional(storage->type) : std::nullopt;
    if (third) {
      const PickleNode& dtype = pickle_.node(arguments[6]);
      type = dtype.kind == Kind::global ? dtype_named(dtype.text) : std::nullopt;
    }
    if (!storage || !type) {
      content_.metadata[name] = "<a tensor of a type that is not read>";
      return;
    }
    tensor.type = *type;
    tensor.storage = *storage;
    check_reach(tensor);
    if (!names_.emplace(name, content_.tensors.size()).second)
      refuse(fmt::format("it has two tensors `{}`", quotable(name)));
    content_.tensors.push_back(std::move(tensor));
  }

  void check_reach(PthTensor& tensor) {
    const auto width = static_cast<int64_t>(at::elementSize(tensor.type));
    const auto storage_width = static_cast<int64_t>(at::elementSize(tensor.storage.type));
    const std::string name = quotable(tensor.name);
    if (tensor.shape.size() != tensor.strides.size())
      refuse(fmt::format("its tensor `{}` has {} extents and {} strides", name, tensor.shape.size(),
                         tensor.strides.size()));
    // Counted without the zeros too: LibTorch's strides overflow even where there are no elements.
    int64_t bytes = width;
    bool empty = false, too_large = false;
    for (const int64_t extent : tensor.shape) {
      too_large |= __builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes);
      empty |= extent == 0;
    }
    if (too_large) refuse(fmt::format("its tensor `{}` has a shape too large to exist", name));
    int64_t storage_bytes = 0;
    if (__builtin_mul_overflow(tensor.storage.elements, storage_width, &storage_bytes))
      refuse(fmt::format("the storage of its tensor `{}` is too large to exist", name));
    if (empty) return;
    int64_t last = tensor.storage.view_offset;
    bool outside = __builtin_add_overflow(last, tensor.offset, &last);
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      int64_t reach = 0;
      outside |= __builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &reach);
      outside |= __builtin_add_overflow(last, reach, &last);
    }
    if (outside || last >= storage_bytes / width)
      refuse(fmt::format("its tensor `{}` reaches outside its storage of {} bytes", name,
                         storage_bytes));
    tensor.span = last - tensor.storage.view_offset - tensor.offset + 1;
    if (static_cast<uint64_t>(bytes) > claim_)
      refuse(fmt::format("its tensors claim far more than the file's {} bytes", file_size_));
    claim_ -= static_cast<uint64_t>(bytes);
  }

  const Pickle& pickle_;
  const std::string& name_;
  uint64_t file_size_, budget_ = 0, claim_ = 0;
  std::unordered_map<std::string, size_t> names_;
  PthContent content_;
};

}  // namespace

PthContent list_tensors(const Pickle& pickle, uint64_t file_size, const std::string& name) {
  return Walk(pickle, file_size, name).run();
}

std::vector<PthStorage> list_storages(const Pickle& pickle, const std::string& name) {
  return Walk(pickle, 0, name).storages();
}

}  // namespace tandem
