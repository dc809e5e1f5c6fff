#include <fmt/format.h>

#include <bit>
#include <limits>

#include "checkpoint/pth_tensors.h"
#include "checkpoint/tensor_writing.h"
#include "checkpoint/zip_writer.h"
#include "tandem/error.h"

namespace tandem {
namespace {

// Writes protocol 2, as torch.save does, without the memo, which only saves bytes.
class PickleWriter {
 public:
  std::string write(const std::vector<PthItem>& items) {
    text_ = "\x80\x02";
    if (items.size() == 1 && items[0].path.empty()) {
      put_value(items[0]);
    } else {
      put_dict(items, 0, items.size(), 0);
    }
    return text_ + ".";
  }

 private:
  template <class T>
  void put(T number) {
    text_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void put_text(std::string_view text) {
    text_ += 'X';
    put(static_cast<uint32_t>(text.size()));
    text_ += text;
  }
  void put_integer(int64_t value) {
    if (value >= std::numeric_limits<int32_t>::min() &&
        value <= std::numeric_limits<int32_t>::max()) {
      text_ += 'J';
      put(static_cast<int32_t>(value));
    } else {
      text_ += "\x8a\x08";
      put(value);
    }
  }
  void put_integers(const std::vector<int64_t>& values) {
    text_ += '(';
    for (const int64_t value : values) put_integer(value);
    text_ += 't';
  }
  void put_global(const std::string& module, std::string_view name) {
    text_ += "c" + module + "\n" + std::string(name) + "\n";
  }

  // Items [first, last) share their first `depth` keys.
  void put_dict(const std::vector<PthItem>& items, size_t first, size_t last, size_t depth) {
    text_ += "}(";
    while (first < last) {
      const std::string& key = items[first].path.at(depth);
      size_t end = first + 1;
      while (end < last && items[end].path.at(depth) == key) ++end;
      put_text(key);
      if (items[first].path.size() == depth + 1) {
        if (end != first + 1) {
          throw Error(ErrorKind::internal, fmt::format("two values are called `{}`", key));
        }
        put_value(items[first]);
      } else {
        put_dict(items, first, end, depth + 1);
      }
      first = end;
    }
    text_ += 'u';
  }

  void put_value(const PthItem& item) {
    if (std::holds_alternative<std::monostate>(item.value)) {
      text_ += 'N';
    } else if (const auto* flag = std::get_if<bool>(&item.value)) {
      text_ += *flag ? '\x88' : '\x89';
    } else if (const auto* integer = std::get_if<int64_t>(&item.value)) {
      put_integer(*integer);
    } else if (const auto* real = std::get_if<double>(&item.value)) {
      text_ += 'G';
      put(__builtin_bswap64(std::bit_cast<uint64_t>(*real)));
    } else if (const auto* text = std::get_if<std::string>(&item.value)) {
      put_text(*text);
    } else {
      put_tensor(std::get<TensorToWrite>(item.value));
    }
  }

  void put_tensor(const TensorToWrite& tensor) {
    const std::string_view storage = storage_name(tensor.type);
    if (storage.empty()) {
      throw Error(ErrorKind::internal,
                  fmt::format(".pth has no name for the type {}", c10::toString(tensor.type)));
    }
    std::vector<int64_t> strides(tensor.shape.size(), 1);
    for (size_t i = strides.size(); i-- > 1;)
      strides[i - 1] = strides[i] * std::max<int64_t>(tensor.shape[i], 1);
    put_global("torch._utils", "_rebuild_tensor_v2");
    text_ += "((";
    put_text("storage");
    put_global("torch", storage);
    put_text(std::to_string(storages_++));
    put_text("cpu");
    put_integer(static_cast<int64_t>(tensor.bytes() / at::elementSize(tensor.type)));
    text_ += "tQ";
    put_integer(0);
    put_integers(tensor.shape);
    put_integers(strides);
    text_ += '\x89';  // needs no gradient
    put_global("collections", "OrderedDict");
    text_ += ")RtR";
  }

  std::string text_;
  int64_t storages_ = 0;
};

std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace

void write_pth(const std::filesystem::path& path, const std::vector<PthItem>& items,
               const OnBytesWritten& on_written) {
  FileDraft draft(path);
  ZipWriter zip(draft);
  const std::string top = "archive/";
  zip.add(top + "data.pkl", PickleWriter().write(items));
  zip.add(top + "byteorder", "little");
  int64_t storage = 0;
  for (const PthItem& item : items) {
    const auto* tensor = std::get_if<TensorToWrite>(&item.value);
    if (!tensor) continue;
    const at::Tensor made = tensor->made();
    zip.add(fmt::format("{}data/{}", top, storage++), bytes_of(made));
    if (on_written) on_written(made.nbytes());
  }
  zip.add(top + "version", "3\n");
  zip.finish();
  draft.commit();
}

}  // namespace tandem
