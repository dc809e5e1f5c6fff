#include "cli/inspect_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/text.h"

namespace tandem {
namespace {

struct Form {
  const char* kind;
  std::string prefix;              // before the model's names
  std::vector<const char*> signs;  // some of its tensors
};

// The first that fits names the file.
const std::vector<Form>& forms() {
  static const std::vector<Form> list = {
      {"XTTS trainer's checkpoint", "model/xtts.", {"gpt."}},
      {"XTTS model of Coqui", "model/", {"gpt.mel_embedding.weight", "hifigan_decoder."}},
      {"XTTS model", "", {"gpt.mel_embedding.weight", "hifigan_decoder."}},
      {"MusicGen model", "", {"decoder.model.decoder.", "text_encoder.", "audio_encoder."}},
      {"DVAE of XTTS", "", {"codebook.embed", "encoder."}},
      {"DVAE of XTTS", "model/", {"codebook.embed", "encoder."}},
  };
  return list;
}

bool has_some(const TensorFile& file, const std::string& start) {
  const auto& entries = file.entries();
  return std::any_of(entries.begin(), entries.end(),
                     [&](const TensorEntry& entry) { return entry.name.starts_with(start); });
}

bool are_speakers(const TensorFile& file) {
  const auto& entries = file.entries();
  return !entries.empty() &&
         std::all_of(entries.begin(), entries.end(), [](const TensorEntry& entry) {
           return entry.name.ends_with("/gpt_cond_latent") ||
                  entry.name.ends_with("/speaker_embedding");
         });
}

int64_t speakers_in(const TensorFile& file) {
  const auto& entries = file.entries();
  return std::count_if(entries.begin(), entries.end(), [](const TensorEntry& entry) {
    return entry.name.ends_with("/speaker_embedding");
  });
}

const Form* form_of(const TensorFile& file) {
  for (const Form& form : forms()) {
    const bool fits = std::all_of(form.signs.begin(), form.signs.end(), [&](const char* sign) {
      return has_some(file, form.prefix + sign);
    });
    if (fits) return &form;
  }
  return nullptr;
}

std::string kind_of(const TensorFile& file, const Form* form) {
  if (form) return form->kind;
  if (are_speakers(file)) return fmt::format("speakers of XTTS, {}", speakers_in(file));
  if (file.has("gpt_cond_latent") && file.has("speaker_embedding")) return "voice for XTTS";
  if (file.entries().size() == 1 && file.has("tensor")) return "one tensor";
  if (file.entries().empty()) {
    const auto object = file.metadata().find("object");
    return object == file.metadata().end() ? "no tensors" : "an object, " + object->second;
  }
  return "tensors";
}

std::string part_of(const std::string& name, const Form* form) {
  const auto starts = [&](const char* start) { return name.starts_with(form->prefix + start); };
  if (!form) return "tensors";
  if (name.starts_with("optimizer/")) return "optimizer";
  if (name.starts_with("model/dvae.")) return "dvae";
  if (std::string_view(form->kind).starts_with("DVAE"))
    return starts("mel_stats") ? "other" : "dvae";
  if (std::string_view(form->kind).starts_with("MusicGen")) {
    if (starts("text_encoder.")) return "text encoder";
    if (starts("audio_encoder.")) return "codec";
    return starts("decoder.") || starts("enc_to_dec_proj.") ? "decoder" : "other";
  }
  if (starts("gpt.conditioning_")) return "conditioning";
  if (starts("gpt.gpt_inference.") || starts("gpt.gpt.wte.") || starts("gpt.gpt.wpe."))
    return "other";
  if (starts("gpt.")) return "gpt";
  if (starts("hifigan_decoder.waveform_decoder.")) return "vocoder";
  if (starts("hifigan_decoder.speaker_encoder.")) return "speaker encoder";
  return "other";
}

// Statistics, counters and tables are not trained.
bool is_parameter(const TensorEntry& entry) {
  if (!at::isFloatingType(entry.type) && !at::isComplexType(entry.type)) return false;
  for (const char* ending : {".running_mean", ".running_var", ".num_batches_tracked", "mel_stats",
                             "embed_positions.weights"}) {
    if (entry.name.ends_with(ending)) return false;
  }
  for (const char* part :
       {".torch_spec.", "codebook.", "torch_mel_spectrogram", "discrete_loss."}) {
    if (entry.name.find(part) != entry.name.npos) return false;
  }
  return true;
}

}  // namespace

std::string type_name(at::ScalarType type) {
  switch (type) {
    case at::kFloat: return "float32";
    case at::kDouble: return "float64";
    case at::kHalf: return "float16";
    case at::kBFloat16: return "bfloat16";
    case at::kLong: return "int64";
    case at::kInt: return "int32";
    case at::kShort: return "int16";
    case at::kChar: return "int8";
    case at::kByte: return "uint8";
    case at::kBool: return "bool";
    case at::kComplexFloat: return "complex64";
    case at::kComplexDouble: return "complex128";
    default: return lower(c10::toString(type));
  }
}

InspectedFile inspect_tensors(const TensorFile& file) {
  const Form* form = form_of(file);
  InspectedFile inspected{.kind = kind_of(file, form)};
  static const char* const order[] = {
      "text encoder",    "decoder", "codec",     "gpt",     "conditioning", "vocoder",
      "speaker encoder", "dvae",    "optimizer", "tensors", "other"};
  std::map<std::string, InspectedPart> parts;
  for (const TensorEntry& entry : file.entries()) {
    const std::string part = part_of(entry.name, form);
    for (InspectedPart* sum : {&parts[part], &inspected.all}) {
      ++sum->tensors;
      sum->bytes += entry.bytes();
      if (is_parameter(entry) && part != "optimizer" && part != "other")
        sum->parameters += entry.elements();
    }
    ++inspected.types[type_name(entry.type)];
  }
  for (const char* name : order) {
    if (const auto found = parts.find(name); found != parts.end())
      inspected.parts.emplace_back(name, found->second);
  }
  return inspected;
}

}  // namespace tandem
