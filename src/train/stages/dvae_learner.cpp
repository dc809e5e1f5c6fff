#include "train/stages/dvae_learner.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "train/batches/dvae_batches.h"
#include "train/rules/code_counts.h"
#include "util/counted_random.h"

namespace tandem {
namespace {

constexpr double decibels_of_power = 4.342944819032518;  // 10 / ln 10: the mels are of powers

int64_t frames_of_code(const Dvae& dvae) { return int64_t{1} << dvae.encoder.strided.size(); }

at::Tensor make_factors(const Dvae& dvae) {
  const at::Tensor numbers = at::empty({dvae.encoder.mels(), frames_of_code(dvae)}, at::kLong);
  auto* factor = numbers.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < numbers.numel(); ++i)
    factor[i] = static_cast<int64_t>(mix_bits(static_cast<uint64_t>(i)) | 1);
  return numbers.to(dvae.last.weight.device());
}

}  // namespace

DvaeLearner::DvaeLearner(Dvae dvae, const DvaeLearnerOptions& options)
    : dvae_(std::move(dvae)),
      options_(options),
      codebook_(dvae_.encoder.codebook, dvae_.cluster_size, dvae_.embed_avg, options.codebook),
      ticket_factors_(make_factors(dvae_)) {
  // From here on the codebook has them.
  dvae_.encoder.codebook = dvae_.cluster_size = dvae_.embed_avg = at::Tensor();
  dvae_.visit("", [](const std::string&, at::Tensor& tensor) { tensor.requires_grad_(true); });
}

std::vector<Phase> DvaeLearner::phases() {
  Phase phase{.name = "dvae",
              .beta1 = options_.beta1,
              .beta2 = options_.beta2,
              .largest_norm = options_.largest_norm};
  dvae_.visit("", [&](const std::string& name, at::Tensor& tensor) {
    phase.tensors.push_back({.name = name, .tensor = &tensor, .decays = !name.ends_with(".bias")});
  });
  return {phase};
}

std::vector<std::string> DvaeLearner::terms() const {
  return {"loss", "reconstruction", "commitment"};
}

// Of the mels' own bits: the same whatever replica holds them, in whatever row.
at::Tensor DvaeLearner::tickets(const at::Tensor& log_mels) const {
  const at::Tensor bits = log_mels.to(at::kFloat).contiguous().view(at::kInt).to(at::kLong);
  const int64_t frames = frames_of_code(dvae_);
  const at::Tensor each = bits.view({bits.size(0), bits.size(1), -1, frames});
  return (each * ticket_factors_.unsqueeze(1)).sum({1, 3}).view({-1});
}

DvaeLearner::Pass DvaeLearner::pass(const at::Tensor& log_mels, const at::Tensor& lengths) const {
  const at::ScalarType type = dvae_.last.weight.scalar_type();
  Pass out;
  out.masks = dvae_masks(dvae_, lengths, log_mels.size(2), type);
  DvaeMasks computing;
  for (const at::Tensor& mask : out.masks) computing.push_back(mask.to(options_.compute));
  out.scaled = dvae_.encoder.scale(log_mels.to(type));
  const at::Tensor found = encode_ragged(dvae_, out.scaled, computing, options_.compute);
  out.vectors = found.reshape({-1, found.size(2)});
  out.real = out.masks.back().reshape({-1});
  out.codes = codebook_.nearest(out.vectors.detach());
  const at::Tensor chosen = codebook_.lookup(out.codes);
  out.distances = ((chosen - out.vectors).square() * out.real.unsqueeze(1)).sum();
  // Forward the code's vector, backward as if it were the encoder's own.
  const at::Tensor through = out.vectors + (chosen - out.vectors).detach();
  out.mels = decode_ragged(dvae_, through.view_as(found), computing, options_.compute);
  out.squares = ((out.mels - out.scaled).square() * out.masks.front()).sum();
  return out;
}

at::Tensor DvaeLearner::add_gradients(size_t, const Batch& batch, const StepValues& values) {
  const at::Tensor& log_mels = batch.fields[dvae_mels];
  const at::TensorOptions number = log_mels.options().dtype(at::kFloat);
  if (log_mels.numel() == 0) return at::zeros({3}, number);
  const Pass found = pass(log_mels, batch.fields[dvae_mel_lengths]);
  const at::Tensor frames = batch.fields[dvae_whole].select(0, 0).select(0, 0).clamp_min(1);
  const at::Tensor vectors = frames / frames_of_code(dvae_);
  const at::Tensor reconstruction = found.squares / (frames * log_mels.size(1));
  const at::Tensor commitment = found.distances / (vectors * found.vectors.size(1));
  const at::Tensor loss = reconstruction + commitment * options_.commitment;
  (loss * values.scale).backward();
  codebook_.add({.vectors = found.vectors,
                 .codes = found.codes,
                 .real = found.real,
                 .tickets = tickets(log_mels),
                 .whole = vectors},
                values);
  return at::stack({loss, reconstruction, commitment}).detach().to(at::kFloat);
}

std::vector<std::string> DvaeLearner::measures() const {
  return {"loss", "reconstruction", "commitment", "mel_distance"};
}

std::vector<std::pair<std::string, double>> DvaeLearner::read_tally(const at::Tensor& all) const {
  return {{"perplexity", code_perplexity(all).item<double>()},
          {"codes_used", code_usage(all).item<double>()}};
}

Measured DvaeLearner::validate(const Batch& batch) {
  const at::NoGradGuard no_grad;
  const at::Tensor& log_mels = batch.fields[dvae_mels];
  const at::TensorOptions number = log_mels.options().dtype(at::kFloat);
  if (log_mels.numel() == 0) return {at::zeros({4}, number), at::zeros({4}, number), {}};
  const Pass found = pass(log_mels, batch.fields[dvae_mel_lengths]);
  const at::Tensor frames = batch.fields[dvae_mel_lengths].sum().to(at::kFloat);
  const at::Tensor squares = found.squares / log_mels.size(1);
  // A vector stands for several frames: with its mean distance in each of them, all measures are
  // sums over frames.
  const at::Tensor distances = found.distances * frames_of_code(dvae_) / found.vectors.size(1);
  at::Tensor difference = (found.mels - found.scaled).abs() * found.masks.front();
  if (dvae_.encoder.mel_stats.defined())
    difference = difference * dvae_.encoder.mel_stats.abs().view({1, -1, 1});
  const at::Tensor sums =
      at::stack({squares + distances * options_.commitment, squares, distances,
                 difference.sum() * (decibels_of_power / static_cast<double>(log_mels.size(1)))});
  const at::Tensor real = at::where(found.real > 0, found.codes, -1);
  return {sums.to(at::kFloat), frames.expand({4}).clone(), count_codes(real, codebook_.codes())};
}

at::Tensor DvaeLearner::reconstruct(const at::Tensor& log_mels, const at::Tensor& lengths) const {
  const at::NoGradGuard no_grad;
  const Pass found = pass(log_mels, lengths);
  const at::Tensor mels = found.mels * found.masks.front();
  const at::Tensor& stats = dvae_.encoder.mel_stats;
  return stats.defined() ? mels * stats.view({1, -1, 1}) : mels;
}

at::Tensor DvaeLearner::reconstruct(const at::Tensor& log_mels) const {
  const at::Device device = dvae_.last.weight.device();
  const at::Tensor lengths = at::full({1}, log_mels.size(1), at::kLong);
  return reconstruct(log_mels.unsqueeze(0).to(device), lengths.to(device))[0].to(at::kCPU);
}

}  // namespace tandem
