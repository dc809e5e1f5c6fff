#include "models/musicgen/musicgen.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "models/musicgen/musicgen_folder.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr const char* text_prefix = "text_encoder.";
constexpr const char* codec_prefix = "audio_encoder.";

// What files carry beside the model: the table of positions, which is always computed; the text
// embedding under its second name; a codebook's statistics from training.
bool known_extra(const std::string& name, bool with_codec_encoder) {
  for (const char* ending : {"embed_positions.weights", "codebook.embed_avg",
                             "codebook.cluster_size", "codebook.inited"}) {
    if (name.ends_with(ending)) return true;
  }
  if (name == "text_encoder.shared.weight" || name == "text_encoder.encoder.embed_tokens.weight")
    return true;
  return !with_codec_encoder && name.starts_with("audio_encoder.encoder.");
}

void tell_unknown(const Weights& weights, bool with_codec_encoder) {
  std::vector<std::string> unknown;
  for (const std::string& name : weights.untaken())
    if (!known_extra(name, with_codec_encoder)) unknown.push_back("`" + name + "`");
  if (unknown.empty()) return;
  const size_t all = unknown.size(), shown = std::min<size_t>(all, 4);
  unknown.resize(shown);
  log_info("`{}` holds {} {} MusicGen has no use for: {}{}", weights.source(), all,
           all == 1 ? "tensor" : "tensors", join(unknown, ", "), all > shown ? ", …" : "");
}

}  // namespace

Musicgen Musicgen::load(const std::filesystem::path& path, const MusicgenLoad& what) {
  const MusicgenFolder folder = MusicgenFolder::open(path);
  const auto file = folder.open_weights();
  Weights weights(*file, "");
  Musicgen model;
  model.config = folder.config;
  model.text = T5Encoder::load(weights, text_prefix, model.config.text);
  model.decoder = MusicDecoder::load(weights, "", model.config.decoder, model.config.text.width);
  model.codec = Encodec::load(weights, codec_prefix, model.config.codec, what.with_codec_encoder);
  weights.require_complete("MusicGen model");
  tell_unknown(weights, what.with_codec_encoder);
  model.tokenizer = load_tokenizer(folder.tokenizer_file.string());
  if (model.tokenizer->vocabulary_size() > model.config.text.vocabulary) {
    throw Error(ErrorKind::corrupt,
                fmt::format("`{}` has {} tokens; the text encoder has {} embeddings",
                            folder.tokenizer_file.string(), model.tokenizer->vocabulary_size(),
                            model.config.text.vocabulary));
  }
  return model;
}

std::vector<int64_t> Musicgen::text_ids(const std::string& caption, int64_t longest) const {
  if (!tokenizer)
    throw Error(ErrorKind::internal, "a MusicGen model of random weights reads no captions");
  const std::vector<int32_t> ids = tokenizer->encode(caption);
  std::vector<int64_t> kept(ids.begin(), ids.end());
  if (longest <= 0 || static_cast<int64_t>(kept.size()) <= longest) return kept;
  const int64_t end = kept.back();
  kept.resize(static_cast<size_t>(longest));
  kept.back() = end;
  return kept;
}

MusicgenCounts count_parameters(const MusicgenConfig& config) {
  MusicgenCounts counts;
  T5Encoder text;
  text.size = config.text;
  text.list(text_prefix, count_into(counts.text));
  MusicDecoder decoder;
  decoder.size = config.decoder;
  decoder.list("", count_into(counts.decoder), config.text.width);
  Encodec codec;
  codec.size = config.codec;
  codec.list(codec_prefix, count_into(counts.codec));
  return counts;
}

}  // namespace tandem
