// Parts of an XTTS model on given inputs, for tests/parity/compare_xtts.py. Inputs and outputs are
// safetensors files; everything runs on the CPU in float32 with one thread.
//
//   xtts_tool latents FOLDER IN OUT    text_ids, codes, gpt_cond_latent -> latents, logits
//   xtts_tool sound FOLDER IN OUT      latents, speaker_embedding -> wav
//   xtts_tool window FOLDER IN OUT     the same in windows of 48 frames
//   xtts_tool gradients FOLDER IN OUT  text_ids, text_lengths, codes, wave_lengths, cond_mels ->
//                                      losses, logits and grad/NAME of every parameter of the GPT
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "models/xtts/xtts.h"
#include "tandem/error.h"
#include "util/atomic_file.h"

namespace {

using tandem::NamedTensors;
using tandem::Xtts;

class Inputs {
 public:
  explicit Inputs(const std::string& path)
      : path_(path), tensors_(tandem::read_safetensors(path).tensors) {}

  at::Tensor operator[](const std::string& name) const {
    const auto place = tensors_.find(name);
    if (place != tensors_.end()) return place->second;
    throw tandem::Error(tandem::ErrorKind::data, fmt::format("`{}` holds no `{}`", path_, name));
  }
  std::vector<int64_t> numbers(const std::string& name) const {
    const at::Tensor flat = (*this)[name].to(at::kLong).contiguous().reshape({-1});
    return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
  }

 private:
  std::string path_;
  std::map<std::string, at::Tensor> tensors_;
};

NamedTensors latents(const Xtts& model, const Inputs& in) {
  const at::NoGradGuard no_gradients;
  const at::Tensor found =
      model.gpt.latents(in.numbers("text_ids"), in.numbers("codes"), in["gpt_cond_latent"]);
  return {{"latents", found}, {"logits", model.gpt.audio_head(found)}};
}

NamedTensors sound(const Xtts& model, const Inputs& in) {
  const at::NoGradGuard no_gradients;
  return {{"wav", model.vocoder(in["latents"], in["speaker_embedding"].reshape({1, -1}))}};
}

NamedTensors windows(const Xtts& model, const Inputs& in) {
  const at::NoGradGuard no_gradients;
  const at::Tensor codes = in["latents"], speaker = in["speaker_embedding"].reshape({1, -1});
  const tandem::Vocoder& vocoder = model.vocoder;
  const int64_t all = vocoder.frames_of(codes.size(1)), reach = vocoder.context_frames();
  const int64_t step = 48, samples = vocoder.samples_a_frame();
  std::vector<at::Tensor> pieces;
  for (int64_t first = 0; first < all; first += step) {
    const int64_t last = std::min(first + step, all);
    const int64_t begin = std::max<int64_t>(first - reach, 0), end = std::min(last + reach, all);
    const at::Tensor wave = vocoder.sound(vocoder.frames(codes, begin, end - begin), speaker);
    pieces.push_back(wave.slice(1, (first - begin) * samples, (last - begin) * samples));
  }
  return {{"wav", at::cat(pieces, 1)}};
}

NamedTensors gradients(Xtts& model, const Inputs& in) {
  NamedTensors parameters;
  model.visit([&](const std::string& name, at::Tensor& parameter) {
    if (!name.starts_with("gpt.")) return;
    parameters.emplace_back(name, parameter.set_requires_grad(true));
  });
  const auto found =
      model.gpt.teacher_forced(in["text_ids"], in["text_lengths"], in["codes"], in["wave_lengths"],
                               model.conditioning(in["cond_mels"]));
  (0.01 * found.loss_text + found.loss_audio).backward();
  NamedTensors out = {{"loss_text", found.loss_text.detach()},
                      {"loss_mel", found.loss_audio.detach()},
                      {"text_logits", found.text_logits.detach()},
                      {"mel_logits", found.audio_logits.detach()}};
  for (const auto& [name, parameter] : parameters) {
    if (parameter.grad().defined()) out.emplace_back("grad/" + name, parameter.grad());
  }
  return out;
}

void run(const std::vector<std::string>& words) {
  if (words.size() != 4) {
    throw tandem::Error(tandem::ErrorKind::usage,
                        "use: xtts_tool latents|sound|window|gradients FOLDER IN OUT");
  }
  at::set_num_threads(1);
  Xtts model = Xtts::load(tandem::XttsFolder::open(words[1]));
  const Inputs in(words[2]);
  NamedTensors out;
  if (words[0] == "latents") {
    out = latents(model, in);
  } else if (words[0] == "sound") {
    out = sound(model, in);
  } else if (words[0] == "window") {
    out = windows(model, in);
  } else if (words[0] == "gradients") {
    out = gradients(model, in);
  } else {
    throw tandem::Error(tandem::ErrorKind::usage, fmt::format("there is no `{}`", words[0]));
  }
  for (auto& [name, tensor] : out) tensor = tensor.contiguous();
  tandem::write_file_atomically(words[3], tandem::format_safetensors(out, {}));
}

}  // namespace

int main(int count, char** words) {
  try {
    run({words + 1, words + count});
    return 0;
  } catch (const std::exception& error) {
    const tandem::Explanation why = tandem::explain(error);
    fmt::print(stderr, "xtts_tool: error: {}\n", why.sentence);
    return tandem::exit_code(why.kind);
  }
}
