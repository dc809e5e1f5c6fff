#include "models/musicgen/musicgen_trace.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "models/musicgen/music_pass.h"
#include "models/musicgen/music_sound.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

struct ReadCaptions {
  at::Tensor ids, mask, states;   // [B, S], [B, S], [B, S, width]
  std::vector<at::Tensor> texts;  // a clip's own states
};

ReadCaptions read_captions(const Musicgen& model, const std::vector<std::string>& captions) {
  std::vector<std::vector<int64_t>> ids;
  size_t longest = 1;
  for (const std::string& caption : captions) {
    ids.push_back(model.text_ids(caption));
    longest = std::max(longest, ids.back().size());
  }
  ReadCaptions read;
  const auto clips = static_cast<int64_t>(captions.size());
  read.ids = at::zeros({clips, static_cast<int64_t>(longest)}, at::kLong);
  read.mask = at::zeros_like(read.ids);
  for (int64_t clip = 0; clip < clips; ++clip) {
    const std::vector<int64_t>& own = ids[static_cast<size_t>(clip)];
    const auto length = static_cast<int64_t>(own.size());
    read.ids[clip].narrow(0, 0, length).copy_(at::tensor(own, at::kLong));
    read.mask[clip].narrow(0, 0, length).fill_(1);
  }
  read.states = model.text(read.ids, read.mask);
  for (int64_t clip = 0; clip < clips; ++clip) {
    const auto length = static_cast<int64_t>(ids[static_cast<size_t>(clip)].size());
    read.texts.push_back(read.states[clip].narrow(0, 0, length));
  }
  return read;
}

// [B, K, P]; undefined without audio prompts. Shorter ones have silence before them, as
// transformers' processor puts it, and its codes are read too.
at::Tensor read_prompts(const Musicgen& model, const MusicTraceRequest& request) {
  const std::vector<std::string>& files = request.audio_prompts;
  if (files.empty()) return {};
  const MusicDecoderSize& size = model.config.decoder;
  std::vector<at::Tensor> sounds;
  int64_t longest = 0;
  for (size_t i = 0; i < request.captions.size(); ++i) {
    const std::string& file = files.size() == 1 ? files.front() : files[i];
    sounds.push_back(read_prompt_sound(file, model.config.codec.rate, size.channels));
    longest = std::max(longest, sounds.back().size(1));
  }
  at::Tensor padded =
      at::zeros({static_cast<int64_t>(sounds.size()), size.channels, longest}, at::kFloat);
  for (size_t i = 0; i < sounds.size(); ++i) {
    const int64_t length = sounds[i].size(1);
    padded[static_cast<int64_t>(i)].narrow(1, longest - length, length).copy_(sounds[i]);
  }
  return codes_of_sound(model.codec, size, padded);
}

Metadata describe(const MusicTraceRequest& request) {
  const MusicDrawOptions& draw = request.draw;
  return {{"format", "tandem musicgen trace"},
          {"captions", join(request.captions, "\n")},
          {"greedy", draw.greedy ? "true" : "false"},
          {"rng", request.hf_draws ? "hf" : "counted"},
          {"seed", std::to_string(request.seed)},
          {"max_new_tokens", std::to_string(request.new_tokens)},
          {"guidance_scale", fmt::format("{}", draw.guidance_scale)},
          {"temperature", fmt::format("{}", draw.temperature)},
          {"top_k", std::to_string(draw.top_k)},
          {"top_p", fmt::format("{}", draw.top_p)}};
}

}  // namespace

MusicTrace trace_musicgen(const Musicgen& model, const MusicTraceRequest& request) {
  const at::NoGradGuard no_grad;
  if (request.captions.empty()) throw Error(ErrorKind::data, "there is no caption to trace");
  if (request.audio_prompts.size() > 1 && request.audio_prompts.size() != request.captions.size()) {
    throw Error(ErrorKind::data,
                fmt::format("{} audio prompts for {} captions; expected one for "
                            "all or one a caption",
                            request.audio_prompts.size(), request.captions.size()));
  }
  const ReadCaptions read = read_captions(model, request.captions);
  const at::Tensor prompt = read_prompts(model, request);
  const MusicStepWeights weights = MusicStepWeights::make(model.decoder, at::kCPU);
  MusicDraws draws =
      request.hf_draws
          ? MusicDraws::hf(request.seed)
          : MusicDraws::counted(std::vector<uint64_t>(request.captions.size(), request.seed));
  MusicPass pass(weights, read.texts, prompt, draws,
                 {.draw = request.draw, .new_tokens = request.new_tokens});
  while (!pass.done()) pass.step();
  const MusicLogits& logits = pass.first_logits();
  const at::Tensor codes = pass.codes();

  MusicTrace trace;
  trace.metadata = describe(request);
  trace.tensors = {
      {"text_ids", read.ids},
      {"text_mask", read.mask},
      {"text_states", read.states.contiguous()},
      {"logits_cond", logits.cond.contiguous()},
      {"logits_cfg", guided_scores(logits.cond, logits.uncond, request.draw.guidance_scale)
                         .clone(at::MemoryFormat::Contiguous)},
      {"tokens", pass.tokens()},
      {"codes", codes},
      {"wav", sound_of_codes(model.codec, model.config.decoder, codes).contiguous()}};
  if (logits.uncond.defined())
    trace.tensors.emplace_back("logits_uncond", logits.uncond.contiguous());
  if (prompt.defined()) trace.tensors.emplace_back("prompt_codes", prompt.contiguous());
  return trace;
}

}  // namespace tandem
