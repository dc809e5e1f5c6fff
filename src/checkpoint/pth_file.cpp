// Opens .pth files: finds the pickle and the storages in a zip archive or in the older chain of
// pickles, and reads tensors out of them.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "checkpoint/byte_source.h"
#include "checkpoint/pth_format.h"
#include "checkpoint/pth_legacy.h"
#include "checkpoint/pth_tensors.h"
#include "checkpoint/tensor_file.h"
#include "checkpoint/zip_archive.h"

namespace tandem {
namespace {

constexpr uint64_t largest_pickle = uint64_t{64} << 20;

class PthFile final : public TensorFile {
 public:
  explicit PthFile(std::unique_ptr<StoredBytes> bytes) : bytes_(std::move(bytes)) {
    path_ = bytes_->name();
    const std::string start = bytes_->read(0, std::min<uint64_t>(4, bytes_->size()));
    starts_like_zip(start) ? open_zip() : open_legacy();
    for (const PthTensor& tensor : tensors_)
      entries_.push_back({tensor.name, tensor.type, tensor.shape});
    index_names();
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { refuse_pth(bytes_->name(), why); }

  void take(PthContent content) {
    tensors_ = std::move(content.tensors);
    metadata_ = std::move(content.metadata);
  }

  void open_zip() {
    format_ = "pth zip";
    const ZipArchive archive(*bytes_);
    const std::string top = top_folder(archive);
    const ZipMember* pickle = archive.find(top + "data.pkl");
    if (!pickle) refuse("its archive has no `data.pkl`");
    if (archive.find(top + "constants.pkl"))
      refuse("it is a TorchScript program, not a checkpoint");
    check_byte_order(archive, top);
    if (pickle->size > largest_pickle)
      refuse(fmt::format("its pickle has {} bytes, more than {}", pickle->size, largest_pickle));
    const std::string text = bytes_->read(pickle->offset, pickle->size);
    const auto content = list_of(text);
    if (!content) refuse("its pickle is cut off");
    take(*content);
    for (const PthTensor& tensor : tensors_) {
      const ZipMember* member = archive.find(top + "data/" + tensor.storage.key);
      place_storage(tensor, member != nullptr, member ? member->offset : 0,
                    member ? member->size : 0);
    }
  }

  // A storage is as long as what refers to it says; a part of one is not longer.
  void place_storage(const PthTensor& tensor, bool found, uint64_t offset, uint64_t size) {
    if (!found) {
      refuse(fmt::format("the storage `{}` of its tensor `{}` is missing",
                         quotable(tensor.storage.key), quotable(tensor.name)));
    }
    const auto expected =
        static_cast<uint64_t>(tensor.storage.elements) * at::elementSize(tensor.storage.type);
    if (tensor.storage.is_view ? expected > size : expected != size) {
      refuse(fmt::format("the storage of its tensor `{}` has {} bytes, where {} were expected",
                         quotable(tensor.name), size, expected));
    }
    offsets_.push_back(offset);
  }

  std::optional<PthContent> list_of(const std::string& text) const {
    try {
      const Pickle pickle(text, bytes_->name());
      return list_tensors(pickle, bytes_->size(), bytes_->name());
    } catch (const Pickle::Ended&) {
      return std::nullopt;
    }
  }

  // Every member lies in one folder, named as the file once was.
  std::string top_folder(const ZipArchive& archive) const {
    if (archive.members().empty()) refuse("its archive is empty");
    const std::string& first = archive.members().front().name;
    const size_t slash = first.find('/');
    if (slash == first.npos) refuse("its archive is none that PyTorch wrote");
    const std::string top = first.substr(0, slash + 1);
    for (const ZipMember& member : archive.members()) {
      if (!member.name.starts_with(top)) refuse("its archive is none that PyTorch wrote");
    }
    return top;
  }

  void check_byte_order(const ZipArchive& archive, const std::string& top) const {
    const ZipMember* member = archive.find(top + "byteorder");
    if (!member) return;  // older files have none
    const std::string order = bytes_->read(member->offset, std::min<uint64_t>(member->size, 16));
    if (order != "little") {
      refuse(
          fmt::format("its numbers are in `{}` byte order; only little is read", quotable(order)));
    }
  }

  void open_legacy() {
    format_ = "pth legacy";
    const PthLegacy legacy = read_pth_legacy(*bytes_, largest_pickle);
    take(legacy.content);
    for (const PthTensor& tensor : tensors_) {
      const auto found = legacy.storages.find(tensor.storage.key);
      const bool there = found != legacy.storages.end();
      place_storage(tensor, there, there ? found->second.offset : 0,
                    there ? found->second.size : 0);
    }
  }

  at::Tensor read_entry(size_t place) const override {
    const PthTensor& tensor = tensors_[place];
    // Bools are read as bytes: any but 0 is true, while a bool of C++ may hold 0 and 1 only.
    const bool is_bool = tensor.type == at::kBool;
    const at::ScalarType type = is_bool ? at::kByte : tensor.type;
    if (tensor.span == 0) return at::empty(tensor.shape, tensor.type);
    const uint64_t width = at::elementSize(type);
    const uint64_t first =
        offsets_[place] + static_cast<uint64_t>(tensor.storage.view_offset + tensor.offset) * width;
    at::Tensor flat = at::empty({tensor.span}, type);
    bytes_->read(first, flat.data_ptr(), static_cast<uint64_t>(tensor.span) * width);
    const at::Tensor value = flat.as_strided(tensor.shape, tensor.strides).contiguous();
    return is_bool ? value.ne(0) : value;
  }

  std::unique_ptr<StoredBytes> bytes_;
  std::vector<PthTensor> tensors_;
  std::vector<uint64_t> offsets_;  // of each tensor's storage in the file
};

}  // namespace

std::unique_ptr<TensorFile> open_pth(std::unique_ptr<StoredBytes> bytes) {
  return std::make_unique<PthFile>(std::move(bytes));
}

}  // namespace tandem
