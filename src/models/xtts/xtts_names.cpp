// Names of XTTS's tensors in Coqui's files and in ours.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "audio/signal/mel.h"
#include "checkpoint/weights.h"
#include "models/xtts/xtts_export.h"
#include "tandem/error.h"

namespace tandem {
namespace {

constexpr const char* speaker_encoder = "hifigan_decoder.speaker_encoder.";

// Copies of parts of the GPT for Coqui's decoding, and tables a trainer keeps.
bool is_leftover(const std::string& name) {
  for (const char* start :
       {"gpt.gpt_inference.", "gpt.gpt.wte.", "gpt.gpt.wpe.", "dvae.", "torch_mel_spectrogram"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

// `ups.0.weight_v` -> `ups.0`, with the ending after it; empty where it is none of the two forms.
struct Normed {
  std::string layer, scale, direction;
};
std::optional<Normed> weight_norm(const std::string& name) {
  const std::pair<const char*, const char*> forms[] = {
      {".parametrizations.weight.original0", ".parametrizations.weight.original1"},
      {".weight_g", ".weight_v"}};
  for (const auto& [scale, direction] : forms) {
    for (const std::string_view ending : {scale, direction}) {
      if (!name.ends_with(ending)) continue;
      const std::string layer = name.substr(0, name.size() - ending.size());
      return Normed{layer, layer + scale, layer + direction};
    }
  }
  return std::nullopt;
}

// Layers that have weight norm in Coqui's decoder.
bool wants_weight_norm(const std::string& name) {
  const std::string decoder = "hifigan_decoder.waveform_decoder.";
  return (name.starts_with(decoder + "ups.") || name.starts_with(decoder + "resblocks.")) &&
         name.ends_with(".weight");
}

std::vector<int64_t> column_shape(const std::vector<int64_t>& shape) {
  std::vector<int64_t> column(shape.size(), 1);
  column[0] = shape[0];
  return column;
}

at::Tensor row_norms(const at::Tensor& weight) {
  return weight.to(at::kFloat)
      .reshape({weight.size(0), -1})
      .norm(2, {1})
      .reshape(column_shape(weight.sizes().vec()));
}

// A row of zeros has no direction: any will do, its scale is 0.
at::Tensor directions(const at::Tensor& weight) {
  return at::where(row_norms(weight) == 0, at::ones_like(weight), weight);
}

class Renaming {
 public:
  Renaming(const TensorFile& file, std::string prefix, std::vector<std::string>* left_out)
      : file_(file), prefix_(std::move(prefix)), left_out_(left_out) {
    for (const TensorEntry& entry : file.entries()) {
      if (!entry.name.starts_with(prefix_)) continue;
      const std::string name = entry.name.substr(prefix_.size());
      if (!is_leftover(name)) {
        entries_.emplace(name, &entry);
      } else if (left_out_) {
        left_out_->push_back(name);
      }
    }
  }

  TensorsToWrite to_ours() {
    TensorsToWrite out;
    for (const auto& [name, entry] : entries_) {
      const auto normed = weight_norm(name);
      if (!normed) {
        out.emplace(name, as_it_is(*entry));
      } else if (name == normed->direction) {
        out.emplace(normed->layer + ".weight", folded(*normed));
      } else if (!entries_.count(normed->direction)) {
        refuse_alone(name);
      }
    }
    return out;
  }

  TensorsToWrite to_coqui() {
    TensorsToWrite out;
    for (const auto& [name, entry] : entries_) {
      const auto normed = weight_norm(name);
      if (normed) {
        out.emplace(normed->layer + (name == normed->scale ? ".parametrizations.weight.original0"
                                                           : ".parametrizations.weight.original1"),
                    as_it_is(*entry));
      } else if (wants_weight_norm(name) && !entry->shape.empty()) {
        unfold(name, *entry, out);
      } else {
        out.emplace(name, as_it_is(*entry));
      }
    }
    add_tables(out);
    return out;
  }

 private:
  [[noreturn]] void refuse_alone(const std::string& name) const {
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}` holds `{}` without the other half of its weight norm",
                            file_.path().string(), name));
  }

  TensorToWrite as_it_is(const TensorEntry& entry) const {
    return {.type = entry.type, .shape = entry.shape, .make = [&file = file_, name = entry.name] {
              return file.read(name);
            }};
  }

  TensorToWrite folded(const Normed& normed) const {
    const auto scale = entries_.find(normed.scale);
    if (scale == entries_.end()) refuse_alone(normed.direction);
    const TensorEntry& g = *scale->second;
    const TensorEntry& v = *entries_.at(normed.direction);
    if (v.shape.empty() || g.elements() != v.shape[0]) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("`{}`: the weight norm of `{}` has {} scales for {} rows",
                              file_.path().string(), normed.layer, g.elements(),
                              v.shape.empty() ? 0 : v.shape[0]));
    }
    return {.type = v.type,
            .shape = v.shape,
            .make = [&file = file_, g = g.name, v = v.name, type = v.type] {
              return fold_weight_norm(file.read(g), file.read(v)).to(type);
            }};
  }

  void unfold(const std::string& name, const TensorEntry& entry, TensorsToWrite& out) const {
    const std::string layer = name.substr(0, name.size() - std::string(".weight").size());
    out.emplace(layer + ".parametrizations.weight.original0",
                TensorToWrite{.type = at::kFloat,
                              .shape = column_shape(entry.shape),
                              .make = [&file = file_, from = entry.name] {
                                return row_norms(file.read(from));
                              }});
    out.emplace(
        layer + ".parametrizations.weight.original1",
        TensorToWrite{
            .type = entry.type, .shape = entry.shape, .make = [&file = file_, from = entry.name] {
              return directions(file.read(from));
            }});
  }

  // Coqui's files also hold counters, and the speaker encoder's mel tables.
  void add_tables(TensorsToWrite& out) const {
    const auto add = [&](const std::string& name, const at::Tensor& tensor) {
      out.emplace(name, TensorToWrite::of(tensor));  // keeps one that is there
    };
    bool has_encoder = false;
    std::vector<std::string> norms;
    for (const auto& [name, tensor] : out) {
      has_encoder |= name.starts_with(speaker_encoder);
      if (name.ends_with(".running_mean")) norms.push_back(name.substr(0, name.rfind('.')));
    }
    for (const std::string& norm : norms)
      add(norm + ".num_batches_tracked", at::zeros({}, at::kLong));
    if (!has_encoder) return;
    const MelOptions mel = mel_speaker_encoder();
    const std::string tables = std::string(speaker_encoder) + "torch_spec.";
    add(tables + "0.filter",
        at::tensor({-static_cast<float>(mel.preemphasis), 1.0f}).view({1, 1, 2}));
    add(tables + "1.spectrogram.window", at::hamming_window(mel.window_length, at::kFloat));
    add(tables + "1.mel_scale.fb", mel_filters(mel).to(at::kFloat));
  }

  const TensorFile& file_;
  std::string prefix_;
  std::vector<std::string>* left_out_;
  std::map<std::string, const TensorEntry*> entries_;
};

// What stays as exact as it was: statistics, tables, scales, and everything of one dimension.
bool keeps_its_type(const std::string& name, const TensorToWrite& tensor) {
  return tensor.shape.size() < 2 || !at::isFloatingType(tensor.type) ||
         name.find(".torch_spec.") != name.npos || name.ends_with(".original0") ||
         name.ends_with(".weight_g") || name.starts_with("codebook.");
}

at::Tensor cast(const at::Tensor& tensor, at::ScalarType type, const std::string& name) {
  const at::Tensor result = tensor.to(type);
  if (type == at::kHalf && !at::equal(result.isfinite(), tensor.isfinite())) {
    throw Error(ErrorKind::data,
                fmt::format("`{}` holds numbers beyond what fp16 can, {}", name, 65504))
        .hint("choose --precision bf16");
  }
  return result;
}

}  // namespace

TensorsToWrite xtts_tensors(const TensorFile& file, const std::string& prefix, XttsTarget target,
                            std::vector<std::string>* left_out) {
  Renaming renaming(file, prefix, left_out);
  return target == XttsTarget::coqui ? renaming.to_coqui() : renaming.to_ours();
}

TensorsToWrite in_precision(const TensorsToWrite& tensors, at::ScalarType precision) {
  TensorsToWrite out;
  for (const auto& [name, tensor] : tensors) {
    TensorToWrite changed = tensor;
    if (!keeps_its_type(name, tensor)) {
      changed.type = precision;
      changed.make = [make = tensor.make, precision, name] {
        return cast(make(), precision, name);
      };
    }
    out.emplace(name, std::move(changed));
  }
  return out;
}

}  // namespace tandem
