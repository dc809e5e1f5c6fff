#include "models/xtts/xtts_speak.h"

#include <ATen/ATen.h>

#include <span>

namespace tandem {

// Draws a code from the last place, appends it, goes on from there.
Spoken speak_codes(const XttsGpt& gpt, const std::vector<int64_t>& text_ids,
                   const at::Tensor& conditioning, const SpeakOptions& options) {
  const int64_t allowed = gpt.size.max_new_codes();
  const int64_t most = options.most_codes > 0 ? std::min(options.most_codes, allowed) : allowed;
  check_sampling(options.sampling);
  // The reference's generate() sees the prompt as ids: ones, and the start token at its end. Its
  // repetition penalty counts them as said.
  std::vector<bool> seen(static_cast<size_t>(gpt.size.audio_tokens));
  seen[1] = true;
  seen[static_cast<size_t>(gpt.size.start_audio_token)] = true;
  const uint64_t key = draw_key(options.seed);

  Spoken spoken;
  XttsGpt::Past past;
  std::vector<at::Tensor> logits, latents;
  at::Tensor input = gpt.prompt(text_ids, conditioning);
  for (int64_t step = 0; step < most; ++step) {
    const at::Tensor hidden = gpt.hidden(input, past);
    latents.push_back(hidden[0][hidden.size(1) - 1]);
    logits.push_back(gpt.audio_head(latents.back()).contiguous());
    const at::Tensor here = logits.back().to(at::kCPU, at::kFloat);
    const std::span row(here.const_data_ptr<float>(), seen.size());
    const int64_t code =
        sample_code(row, seen, options.sampling, draw_unit(key, static_cast<uint64_t>(step)));
    spoken.codes.push_back(code);
    if (code == gpt.size.stop_audio_token) break;
    seen[static_cast<size_t>(code)] = true;
    if (step + 1 < most) input = gpt.code_input(code, step + 1);
  }
  spoken.logits = at::stack(logits);
  spoken.latents = at::stack(latents);
  return spoken;
}

}  // namespace tandem
