#include "train/stages/dvae_selection.h"

#include <ATen/ATen.h>

#include "train/stages/codebook.h"

namespace tandem {

DvaeJudgement judge_dvae(const Dvae& dvae, const MelClips& clips) {
  const at::NoGradGuard no_grad;
  DvaeJudgement judged;
  std::vector<at::Tensor> codes;
  for (const at::Tensor& clip : clips) {
    const Dvae::Reconstruction found = dvae.reconstruct(clip.unsqueeze(0));
    judged.loss += found.loss.item<double>() * static_cast<double>(clip.size(1));
    judged.frames += clip.size(1);
    codes.push_back(found.codes.view({-1}));
  }
  if (judged.frames > 0) judged.loss /= static_cast<double>(judged.frames);
  judged.codes = codes.empty() ? at::empty({0}, at::kLong) : at::cat(codes);
  return judged;
}

DvaeSelection select_codes(Dvae& dvae, int64_t keep, const MelClips& clips) {
  const at::NoGradGuard no_grad;
  const at::Tensor kept = select_codes(dvae.cluster_size, keep);
  const DvaeJudgement before = judge_dvae(dvae, clips);
  DvaeSelection report{.before = dvae.encoder.size.codes,
                       .after = keep,
                       .loss_before = before.loss,
                       .judged = before.frames > 0};
  const double counted = dvae.cluster_size.sum().item<double>();
  const double surviving = dvae.cluster_size.index_select(0, kept).sum().item<double>();
  report.counted_share = counted > 0 ? surviving / counted : 0;
  if (report.judged)
    report.clip_share = at::isin(before.codes, kept).to(at::kDouble).mean().item<double>();

  dvae.encoder.codebook = dvae.encoder.codebook.index_select(1, kept);
  dvae.cluster_size = dvae.cluster_size.index_select(0, kept);
  if (dvae.embed_avg.defined()) dvae.embed_avg = dvae.embed_avg.index_select(1, kept);
  dvae.encoder.size.codes = keep;
  report.loss_after = judge_dvae(dvae, clips).loss;
  return report;
}

}  // namespace tandem
