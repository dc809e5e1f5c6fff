#include "train/voice_parts.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "checkpoint/tensor_writing.h"
#include "models/xtts/xtts_folder.h"
#include "nn/checksum.h"
#include "tandem/config.h"
#include "tandem/error.h"
#include "text/tokenizer.h"
#include "util/atomic_file.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

// Sizes that belong to the vocabulary, not to the preset.
void fit_vocabulary(XttsGptSize& gpt, const fs::path& vocabulary) {
  const auto tokenizer = load_tokenizer(vocabulary.string());
  gpt.text_tokens = tokenizer->vocabulary_size();
  gpt.start_text_token = tokenizer->id_of("[START]");
  gpt.stop_text_token = tokenizer->id_of("[STOP]");
  if (gpt.start_text_token >= 0 && gpt.stop_text_token >= 0) return;
  throw Error(
      ErrorKind::corrupt,
      fmt::format("`{}` has no tokens [START] and [STOP], which XTTS needs", vocabulary.string()))
      .hint("make one with: tandem prepare DIR --train-tokenizer 6681");
}

NamedTensors tensors_of(const std::function<void(const VisitParameter&)>& visit) {
  NamedTensors list;
  visit([&](const std::string& name, at::Tensor& tensor) {
    list.emplace_back(name, tensor.detach());
  });
  return list;
}

}  // namespace

std::string mark_of(const std::function<void(const VisitParameter&)>& visit) {
  std::vector<at::Tensor> tensors;
  visit([&](const std::string&, at::Tensor& tensor) {
    if (tensor.defined()) tensors.push_back(tensor);
  });
  return fmt::format("{:016x}", static_cast<uint64_t>(checksum(tensors).item<int64_t>()));
}

fs::path find_vocabulary(const Config& config) {
  if (config.model.pretrained) return XttsFolder::open(*config.model.pretrained).vocabulary_file;
  if (config.data.tokenizer) return *config.data.tokenizer;
  if (!config.data.train_data) return {};
  const fs::path data = *config.data.train_data;
  std::error_code ignored;
  const fs::path beside =
      (fs::is_directory(data, ignored) ? data : data.parent_path()) / "vocab.json";
  return fs::exists(beside, ignored) ? beside : fs::path();
}

XttsConfig voice_config(const Config& config) {
  if (config.model.pretrained) return XttsFolder::open(*config.model.pretrained).config;
  XttsConfig made = xtts_preset(config.model.size);
  // XTTS v2 asks for 5. In real clips 17.8 % of the codes were said before; a voice of one small
  // corpus is sure of them, and a penalty of 5 forbids it what it rightly wants to say (CER 78 %
  // against 51 % with 1 to 1.2).
  made.sampling.repetition_penalty = 1.2;
  made.keeps_endings = true;
  if (const fs::path vocabulary = find_vocabulary(config); !vocabulary.empty())
    fit_vocabulary(made.gpt, vocabulary);
  return made;
}

VoiceParts open_voice_parts(const Config& config) {
  VoiceParts parts;
  if (!config.model.pretrained) {
    const auto seed = static_cast<uint64_t>(config.training.seed);
    const XttsConfig made = voice_config(config);
    parts.xtts = Xtts::make(made, seed);
    parts.xtts.mel_stats = at::Tensor();
    parts.dvae = Dvae::make(made, seed);
    parts.vocabulary = find_vocabulary(config);
    return parts;
  }
  const XttsFolder folder = XttsFolder::open(*config.model.pretrained);
  parts.xtts = Xtts::load(folder);
  parts.vocabulary = folder.vocabulary_file;
  parts.pretrained = true;
  parts.trained = trained_stages(folder.path);
  if (!folder.dvae_file.empty()) {
    parts.dvae = Dvae::load(folder.dvae_file.string());
    parts.dvae->encoder.mel_stats = parts.xtts.mel_stats;
  }
  if (config.data.tokenizer) {
    const int64_t given = load_tokenizer(*config.data.tokenizer)->vocabulary_size();
    if (given != parts.xtts.gpt.size.text_tokens) {
      throw Error(ErrorKind::config,
                  fmt::format("data.tokenizer `{}` has {} tokens, the model in `{}` {}",
                              *config.data.tokenizer, given, *config.model.pretrained,
                              parts.xtts.gpt.size.text_tokens))
          .hint("leave data.tokenizer out: the model's own vocabulary is used");
    }
  }
  return parts;
}

void write_voice_parts(const VoiceParts& parts, const fs::path& folder, const std::string& stage) {
  make_folder(folder);
  std::set<std::string> trained = parts.trained;
  if (!stage.empty()) trained.insert(stage);
  write_file_atomically(folder / "trained.json",
                        nlohmann::json{{"trained", trained}}.dump(2) + "\n");
  Xtts xtts = parts.xtts;
  write_file_atomically(folder / "config.json", format_xtts_config(xtts.config));
  if (!parts.vocabulary.empty())
    write_file_atomically(folder / "vocab.json", read_file(parts.vocabulary));
  NamedTensors whole = tensors_of([&](const VisitParameter& visit) { xtts.visit(visit); });
  if (xtts.mel_stats.defined()) {
    whole.emplace_back("mel_stats", xtts.mel_stats);
    write_safetensors(folder / "mel_stats.safetensors", {whole.back()});
  }
  write_safetensors(folder / "model.safetensors", whole);
  if (!parts.dvae) return;
  Dvae dvae = *parts.dvae;
  write_safetensors(folder / "dvae.safetensors",
                    tensors_of([&](const VisitParameter& visit) { dvae.visit("", visit); }));
}

void fit_dvae(VoiceParts& parts) {
  at::Tensor& stats = parts.dvae->encoder.mel_stats;
  if (!stats.defined()) stats = parts.xtts.mel_stats;
  const int64_t codes = parts.dvae->encoder.codebook.size(1);
  if (codes == parts.xtts.gpt.size.start_audio_token) return;
  throw Error(ErrorKind::config, fmt::format("the DVAE has {} codes, the GPT expects {}", codes,
                                             parts.xtts.gpt.size.start_audio_token))
      .hint("both must come from the same model folder");
}

void put_weights(const NamedTensors& weights,
                 const std::function<void(const VisitParameter&)>& visit) {
  const std::map<std::string, at::Tensor> given(weights.begin(), weights.end());
  visit([&](const std::string& name, at::Tensor& tensor) {
    const auto found = given.find(name);
    if (found == given.end()) return;
    if (found->second.sizes() != tensor.sizes()) {
      std::ostringstream shapes;
      shapes << found->second.sizes() << " where the model has " << tensor.sizes();
      throw Error(ErrorKind::corrupt, fmt::format("`{}` has shape {}", name, shapes.str()));
    }
    tensor = found->second;
  });
}

}  // namespace tandem
