#include "checkpoint/pth_legacy.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "checkpoint/pth_format.h"

namespace tandem {
namespace {

constexpr std::string_view magic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);  // little-endian
constexpr int64_t protocol = 1001;

class LegacyReader {
 public:
  LegacyReader(const StoredBytes& bytes, uint64_t largest_pickle)
      : bytes_(bytes), largest_pickle_(largest_pickle) {}

  // Where the pickles end is known only once they were run: with ever more of the file, until it is
  // enough.
  PthLegacy read() {
    for (uint64_t window = uint64_t{1} << 20;; window *= 8) {
      const bool all = window >= bytes_.size(), largest = window >= largest_pickle_;
      window = std::min({window, bytes_.size(), largest_pickle_});
      const std::string text = bytes_.read(0, window);
      if (auto result = try_read(text)) {
        find_storages(*result);
        return std::move(*result);
      }
      if (all) refuse("its pickle is cut off");
      if (largest) refuse(fmt::format("its pickle has more than {} bytes", largest_pickle_));
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { refuse_pth(bytes_.name(), why); }

  std::optional<PthLegacy> try_read(std::string_view text) {
    try {
      uint64_t place = 0;
      const auto next = [&] {
        Pickle pickle(text.substr(place), bytes_.name());
        place += pickle.size();
        return pickle;
      };
      check_start(next());
      check_version(next());
      check_machine(next());
      const Pickle content = next(), keys = next();
      PthLegacy result{.content = list_tensors(content, bytes_.size(), bytes_.name())};
      storages_ = list_storages(content, bytes_.name());
      read_keys(keys);
      data_ = place;
      return result;
    } catch (const Pickle::Ended&) {
      return std::nullopt;
    }
  }

  void check_start(const Pickle& pickle) const {
    const PickleNode& node = pickle.node(pickle.root());
    if (node.kind != PickleKind::big_integer || node.text != magic)
      refuse("it is a pickle, but not one that PyTorch wrote");
  }

  void check_version(const Pickle& pickle) const {
    const PickleNode& node = pickle.node(pickle.root());
    if (node.kind != PickleKind::integer || node.integer != protocol)
      refuse("its version is none that is known");
  }

  void check_machine(const Pickle& pickle) const {
    const PickleNode& node = pickle.node(pickle.root());
    if (node.kind != PickleKind::dict) refuse("what it says of its machine is damaged");
    const std::vector<PickleIndex>& items = pickle.items(node);
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      const PickleNode &key = pickle.node(items[i]), &value = pickle.node(items[i + 1]);
      if (key.text == "little_endian" && (value.kind != PickleKind::boolean || !value.integer))
        refuse("its numbers are in `big` byte order; only little is read");
    }
  }

  void read_keys(const Pickle& pickle) {
    const PickleNode& node = pickle.node(pickle.root());
    if (node.kind != PickleKind::list) refuse("its list of storages is damaged");
    keys_.clear();
    for (const PickleIndex item : pickle.items(node)) {
      const PickleNode& key = pickle.node(item);
      if (key.kind != PickleKind::text && key.kind != PickleKind::integer)
        refuse("its list of storages is damaged");
      keys_.push_back(key.kind == PickleKind::text ? std::string(key.text)
                                                   : std::to_string(key.integer));
    }
  }

  // How wide the elements of each storage are, only what refers to it says.
  void find_storages(PthLegacy& result) const {
    std::map<std::string, const PthStorage*> described;
    for (const PthStorage& storage : storages_) described[storage.key] = &storage;
    uint64_t place = data_;
    for (const std::string& key : keys_) {
      const auto found = described.find(key);
      if (found == described.end())
        refuse(fmt::format("nothing says what its storage `{}` holds", quotable(key)));
      int64_t elements = 0;
      if (bytes_.size() - place < sizeof elements) refuse("its storages are cut off");
      bytes_.read(place, &elements, sizeof elements);
      place += sizeof elements;
      const uint64_t width = at::elementSize(found->second->type);
      if (elements < 0 || static_cast<uint64_t>(elements) > (bytes_.size() - place) / width)
        refuse("its storages are cut off");
      const uint64_t size = static_cast<uint64_t>(elements) * width;
      if (!result.storages.emplace(key, PthLegacy::Place{place, size}).second)
        refuse(fmt::format("it has two storages `{}`", quotable(key)));
      place += size;
    }
    if (place != bytes_.size()) refuse("it holds more than its storages");
  }

  const StoredBytes& bytes_;
  uint64_t largest_pickle_, data_ = 0;
  std::vector<std::string> keys_;
  std::vector<PthStorage> storages_;
};

}  // namespace

PthLegacy read_pth_legacy(const StoredBytes& bytes, uint64_t largest_pickle) {
  return LegacyReader(bytes, largest_pickle).read();
}

}  // namespace tandem
