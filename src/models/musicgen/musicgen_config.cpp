#include "models/musicgen/musicgen_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/json_section.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

constexpr int64_t most_width = 65536, most_tokens = int64_t{1} << 24;

bool known_activation(const std::string& name) {
  return name == "relu" || name == "gelu" || name == "gelu_new" || name == "silu";
}

void read_text(const JsonSection& file, T5Size& t5) {
  std::string kind = "t5", inner = "relu";
  file.text("model_type", kind);
  if (kind != "t5") file.refuse_kind("model_type", "text encoders of the kind \"t5\"");
  file.whole("d_model", t5.width, 1, most_width);
  file.whole("num_layers", t5.layers, 1, 1000);
  file.whole("num_heads", t5.heads, 1, 1024);
  file.whole("d_kv", t5.head_width, 1, most_width);
  file.whole("d_ff", t5.inner, 1, 16 * most_width);
  file.whole("vocab_size", t5.vocabulary, 2, most_tokens);
  file.whole("relative_attention_num_buckets", t5.buckets, 4, 65536);
  file.whole("relative_attention_max_distance", t5.max_distance, 2, 1'000'000);
  if (t5.max_distance <= t5.buckets / 4)
    file.refuse("relative_attention_max_distance",
                fmt::format("more than a quarter of the {} buckets", t5.buckets));
  file.real("layer_norm_epsilon", t5.norm_eps, 0, 1);
  file.text("feed_forward_proj", inner);
  t5.gated = inner.starts_with("gated-");
  t5.activation = t5.gated ? inner.substr(6) : inner;
  if (inner == "gated-gelu") t5.activation = "gelu_new";  // T5 v1.1 means its approximation
  if (t5.activation == "swish") t5.activation = "silu";
  if (!known_activation(t5.activation))
    file.refuse_kind("feed_forward_proj", "relu, gelu, gelu_new and silu, gated or not");
}

void read_codec(const JsonSection& file, EncodecSize& codec) {
  std::string kind = "encodec", norm = "weight_norm";
  bool normalize = false;
  file.text("model_type", kind);
  if (kind != "encodec") file.refuse_kind("model_type", "codecs of the kind \"encodec\"");
  file.text("norm_type", norm);
  if (norm != "weight_norm") file.refuse_kind("norm_type", "codecs with \"weight_norm\"");
  file.flag("normalize", normalize);
  if (normalize) file.refuse_kind("normalize", "codecs that do not normalize loudness");
  if (file.has("chunk_length_s")) file.refuse_kind("chunk_length_s", "codecs without chunks");
  file.whole("sampling_rate", codec.rate, 1, 1'000'000);
  file.whole("audio_channels", codec.channels, 1, 2);
  file.whole("hidden_size", codec.hidden, 1, most_width);
  file.whole("num_filters", codec.filters, 1, most_width);
  file.whole("kernel_size", codec.kernel, 1, 1000);
  file.whole("last_kernel_size", codec.last_kernel, 1, 1000);
  file.whole("residual_kernel_size", codec.residual_kernel, 1, 1000);
  file.whole("num_residual_layers", codec.residual_layers, 0, 100);
  file.whole("dilation_growth_rate", codec.dilation_growth, 1, 100);
  file.whole("compress", codec.compress, 1, codec.filters);
  file.whole("num_lstm_layers", codec.lstm_layers, 1, 100);
  const auto ratios = file.numbers("upsampling_ratios", {8, 5, 4, 2});
  codec.ratios.clear();
  for (const double ratio : ratios) {
    if (ratio != std::floor(ratio) || ratio < 1 || ratio > 1000 || ratios.size() > 12)
      file.refuse("upsampling_ratios", "up to 12 whole numbers from 1 to 1000");
    codec.ratios.push_back(static_cast<int64_t>(ratio));
  }
  file.whole("codebook_size", codec.codebook_size, 2, most_tokens);
  codec.codebook_width = codec.hidden;
  file.whole("codebook_dim", codec.codebook_width, 1, most_width);
  if (codec.codebook_width != codec.hidden)
    file.refuse("codebook_dim", fmt::format("the hidden size, {}", codec.hidden));
  file.flag("use_causal_conv", codec.causal);
  file.flag("use_conv_shortcut", codec.shortcut_conv);
  file.text("pad_mode", codec.padding);
  if (codec.padding != "reflect" && codec.padding != "constant" && codec.padding != "replicate")
    file.refuse_kind("pad_mode", "\"reflect\", \"constant\" and \"replicate\"");
  file.real("trim_right_ratio", codec.trim_right, 0, 1);
  // The widest band decides how many codebooks the file holds.
  const double band = file.numbers("target_bandwidths", {1.5, 3, 6, 12, 24}).back();
  const double frames = std::ceil(codec.frame_rate());
  const double bits = std::ceil(std::log2(static_cast<double>(codec.codebook_size)));
  codec.codebooks = static_cast<int64_t>(std::floor(1000 * band / (frames * bits)));
  if (codec.codebooks < 1 || codec.codebooks > 1024)
    file.refuse("target_bandwidths", "bands of 1 to 1024 codebooks");
}

void read_decoder(const JsonSection& file, MusicDecoderSize& decoder) {
  file.whole("hidden_size", decoder.width, 4, most_width);
  file.whole("num_hidden_layers", decoder.layers, 1, 1000);
  file.whole("num_attention_heads", decoder.heads, 1, 1024);
  if (decoder.width % decoder.heads != 0)
    file.refuse("num_attention_heads", fmt::format("a divisor of the width, {}", decoder.width));
  file.whole("ffn_dim", decoder.inner, 1, 16 * most_width);
  file.whole("vocab_size", decoder.vocabulary, 1, most_tokens);
  file.whole("max_position_embeddings", decoder.positions, 1, 1'000'000);
  file.whole("num_codebooks", decoder.codebooks, 1, 1024);
  file.whole("audio_channels", decoder.channels, 1, 2);
  if (decoder.codebooks % decoder.channels != 0)
    file.refuse("num_codebooks", "the same number for both channels");
  file.whole("pad_token_id", decoder.pad_token, 0, most_tokens);
  file.flag("scale_embedding", decoder.scale_embedding);
  file.text("activation_function", decoder.activation);
  if (decoder.activation == "swish") decoder.activation = "silu";
  if (!known_activation(decoder.activation))
    file.refuse_kind("activation_function", "relu, gelu, gelu_new and silu");
}

void read_generation(const JsonSection& file, MusicgenConfig& config) {
  MusicgenDefaults& defaults = config.defaults;
  // What starts a row also stands where the delays leave gaps.
  file.whole("bos_token_id", config.decoder.pad_token, 0, most_tokens);
  file.whole("decoder_start_token_id", config.decoder.pad_token, 0, most_tokens);
  file.flag("do_sample", defaults.sample);
  file.real("guidance_scale", defaults.guidance_scale, 0, 1000);
  file.real("temperature", defaults.temperature, 0, 1000);
  file.real("top_p", defaults.top_p, 0, 1);
  file.whole("top_k", defaults.top_k, 0, most_tokens);
  file.whole("max_length", defaults.max_length, 1, 1'000'000);
}

Json parse(const std::filesystem::path& path) {
  Json tree = Json::parse(read_file(path), nullptr, false);
  if (tree.is_object()) return tree;
  throw Error(ErrorKind::corrupt, fmt::format("`{}` is no JSON object", path.string()));
}

// Parts that do not fit each other.
void check_fit(const MusicgenConfig& config, const std::string& file) {
  const auto demand = [&](bool right, const std::string& sentence) {
    if (!right) throw Error(ErrorKind::corrupt, fmt::format("`{}`: {}", file, sentence));
  };
  const MusicDecoderSize& decoder = config.decoder;
  demand(decoder.vocabulary <= config.codec.codebook_size,
         fmt::format("the decoder speaks {} codes; the codec knows {}", decoder.vocabulary,
                     config.codec.codebook_size));
  demand(decoder.codebooks_a_channel() <= config.codec.codebooks,
         fmt::format("the decoder has {} codebooks a channel; the codec has {}",
                     decoder.codebooks_a_channel(), config.codec.codebooks));
  demand(decoder.pad_token <= decoder.vocabulary,
         fmt::format("the start token is {}; expected one of the decoder's {} embeddings",
                     decoder.pad_token, decoder.vocabulary + 1));
  demand(decoder.channels == 1 || config.codec.channels == 1,
         "a stereo decoder needs a codec of one channel");
}

}  // namespace

int64_t EncodecSize::hop() const {
  int64_t samples = 1;
  for (const int64_t ratio : ratios) samples *= ratio;
  return samples;
}

double EncodecSize::frame_rate() const {
  return static_cast<double>(rate) / static_cast<double>(hop());
}

MusicgenConfig MusicgenConfig::read(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  const std::string name = path.string();
  const Json tree = parse(path);
  const JsonSection file(tree, "", name);
  std::string kind;
  if (tree.contains("model_type")) file.text("model_type", kind);
  if (kind == "musicgen_melody") {
    throw Error(ErrorKind::config,
                fmt::format("`{}` is a melody model (musicgen_melody), which Tandem cannot "
                            "generate with",
                            folder.string()))
        .hint("use musicgen-small, -medium, -large or their stereo variants");
  }
  if (kind != "musicgen") {
    throw Error(ErrorKind::config,
                fmt::format("`{}` is no MusicGen model: its model_type is {}", folder.string(),
                            kind.empty() ? "not given" : "\"" + kind.substr(0, 60) + "\""));
  }
  MusicgenConfig config;
  read_text(file.inner("text_encoder"), config.text);
  read_codec(file.inner("audio_encoder"), config.codec);
  read_decoder(file.inner("decoder"), config.decoder);
  const std::filesystem::path generation = folder / "generation_config.json";
  std::error_code ignored;
  if (std::filesystem::exists(generation, ignored)) {
    const Json wishes = parse(generation);
    const std::string its_name = generation.string();
    read_generation(JsonSection(wishes, "", its_name), config);
  }
  check_fit(config, name);
  return config;
}

}  // namespace tandem
