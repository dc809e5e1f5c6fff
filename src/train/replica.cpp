#include "train/replica.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "data/feed/batch_rows.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "device/torch_errors.h"
#include "nn/checksum.h"
#include "tandem/config.h"
#include "tandem/error.h"
#include "train/rules/step_guard.h"
#include "train/step_observer.h"
#include "util/counted_random.h"
#include "util/log.h"

namespace tandem {
namespace {
constexpr size_t gradient_bucket_bytes = size_t{25} << 20;

bool says_out_of_memory(const std::exception& error) {
  return explain_with_torch(error).kind == ErrorKind::memory;
}
}  // namespace

Replica::Replica(LogicalDevice& device, std::unique_ptr<Learner> learner,
                 const TrainingConfig& config, Communicator* group)
    : device_(device),
      config_(config),
      group_(group),
      learner_(std::move(learner)),
      graphs_(device, config.enable_graph_mode && !config.enable_eager_debug),
      update_graphs_(device, config.enable_graph_mode && !config.enable_eager_debug) {
  DeviceScope scope(device);
  const at::TensorOptions number = scope.options().dtype(at::kFloat);
  values_ = {.step = at::zeros({}, number.dtype(at::kLong)),
             .scale = at::ones({}, number),
             // Replicas draw masks of their own.
             .seed = counted_draw(static_cast<uint64_t>(config.seed), "replica",
                                  group ? static_cast<uint64_t>(group->rank()) : 0, 0),
             .run_seed = static_cast<uint64_t>(config.seed)};
  divisor_ = at::full({}, static_cast<double>(config.gradient_accumulation_steps), number);
  if (config.precision == "fp16") {
    scale_.emplace(LossScaleOptions{}, device.torch_device());
    values_.scale = scale_->scale();
  }
  std::vector<std::vector<TrainedView>> views;
  for (const Phase& phase : learner_->phases()) {
    PhaseParts parts;
    parts.store = std::make_unique<ParameterStore>(
        phase.tensors, config.ema_decay > 0, std::nullopt,
        /*half_gradients=*/!group && config.gradient_accumulation_steps == 1);
    parts.optimizer = std::make_unique<Optimizer>(
        *parts.store, OptimizerOptions{.rule = {.beta1 = phase.beta1,
                                                .beta2 = phase.beta2,
                                                .weight_decay = config.weight_decay,
                                                .average_decay = config.ema_decay},
                                       .largest_norm = phase.largest_norm,
                                       .spike_factor = config.spike_factor,
                                       .most_bad = bad_steps_allowed(config)});
    if (group) {
      parts.reducer =
          std::make_unique<GradientReducer>(*parts.store, *group, gradient_bucket_bytes);
    }
    parts.inputs = {at::zeros({}, number), divisor_};
    parts.learning_rate = phase.learning_rate;
    views.push_back(parts.store->views());
    phases_.push_back(std::move(parts));
  }
  learner_->placed(views);
}

Replica::~Replica() = default;

int64_t Replica::parameters() const {
  int64_t count = 0;
  for (const PhaseParts& phase : phases_) count += phase.store->count();
  return count;
}

std::vector<std::pair<std::string, uint64_t>> Replica::bytes_by_part() {
  std::vector<std::pair<std::string, uint64_t>> parts = {
      {"weights", 0},        {"gradients", 0}, {"moments", 0},
      {"moving average", 0}, {"buffers", 0},   {"activations", learner_->pass_bytes()}};
  const auto add = [&](size_t part, const at::Tensor& tensor) {
    if (tensor.defined()) parts[part].second += tensor.nbytes();
  };
  for (const PhaseParts& phase : phases_) {
    for (const AdamWBuffers& arena : phase.store->arenas()) {
      add(0, arena.weight);
      add(0, arena.low);
      add(1, arena.gradient);
      add(2, arena.mean);
      add(2, arena.square);
      add(3, arena.average);
    }
  }
  for (const auto& [name, buffer] : learner_->buffers()) add(4, buffer);
  std::erase_if(parts, [](const auto& part) { return part.second == 0; });
  return parts;
}

int64_t Replica::reduced_early() const {
  int64_t count = 0;
  for (const PhaseParts& phase : phases_) count += phase.reducer ? phase.reducer->early() : 0;
  return count;
}

void Replica::set_inputs(const StepRequest& request) {
  at::NoGradGuard no_grad;
  values_.step.fill_(request.step);
  values_.number = request.step;
  if (scale_)
    at::mul_out(divisor_, values_.scale,
                at::scalar_tensor(static_cast<double>(config_.gradient_accumulation_steps),
                                  values_.scale.options()));
  for (PhaseParts& phase : phases_)
    phase.inputs.learning_rate.fill_(request.learning_rate * phase.learning_rate);
}

at::Tensor Replica::step(const StepRequest& request) {
  DeviceScope scope(device_);
  gave_up_ = false;
  const int64_t micro_batches = config_.gradient_accumulation_steps;
  at::Tensor scale;
  {
    const StepMark mark(request.observer, StepPart::inputs);
    set_inputs(request);
    // Gradients are on their way to the other replicas before a pass ends: they must be wrong from
    // the start.
    if (request.poison) {
      scale = values_.scale.clone();
      values_.scale.fill_(NAN);
    }
  }
  const auto batch_of = [&](int64_t i) {
    const StepMark mark(request.observer, StepPart::wait);
    return request.batch(i);
  };
  at::Tensor terms;
  std::vector<at::Tensor> outcomes;
  for (int64_t i = 0; i < micro_batches; ++i) {
    const Batch& batch = *batch_of(i);
    const bool last = i + 1 == micro_batches;
    for (size_t phase = 0; phase < phases_.size(); ++phase) {
      values_.first = i == 0;
      const at::Tensor part = add_gradients(phase, batch, last, request);
      // A captured pass gives its result at the same address every time.
      terms = terms.defined() ? terms + part : part.clone();
      const StepMark mark(last ? request.observer : nullptr, StepPart::optimizer,
                          static_cast<int>(phase));
      if (last) outcomes.push_back(update(phase));
    }
  }
  const StepMark mark(request.observer, StepPart::finish);
  at::NoGradGuard no_grad;
  if (request.poison) values_.scale.copy_(scale);
  return finish(std::move(terms), std::move(outcomes));
}

at::Tensor Replica::finish(at::Tensor terms, std::vector<at::Tensor> outcomes) {
  if (group_)
    for (const at::Tensor& sums : learner_->sums()) group_->all_reduce(sums, Reduce::sum)->wait();
  at::Tensor norms = outcomes.front()[0], taken = outcomes.front()[1];
  for (size_t i = 1; i < outcomes.size(); ++i) {
    norms = norms + outcomes[i][0];
    taken = at::minimum(taken, outcomes[i][1]);
  }
  learner_->finish_step(values_, taken);
  if (scale_) scale_->update(norms);
  const int64_t micro_batches = config_.gradient_accumulation_steps;
  if (micro_batches > 1) terms = terms / static_cast<double>(micro_batches);
  if (group_) {
    terms = terms.clone();
    group_->all_reduce(terms, Reduce::sum)->wait();
  }
  outcomes.insert(outcomes.begin(), terms);
  return at::cat(outcomes);
}

// A batch that does not fit is worked on in two halves from then on. Its gradients are shares of
// the whole batch's, so the sum over the halves is the same.
at::Tensor Replica::add_gradients(size_t phase, const Batch& batch, bool last,
                                  const StepRequest& request) {
  const int64_t rows = batch.fields.empty() ? 0 : batch.fields.front().size(0);
  const bool first_batch = values_.first;
  StepRequest asked = request;
  for (;;) {
    const int64_t parts = std::clamp<int64_t>(divisions_, 1, std::max<int64_t>(rows, 1));
    try {
      at::Tensor terms;
      for (int64_t i = 0; i < parts; ++i) {
        const int64_t first = rows * i / parts, end = rows * (i + 1) / parts;
        const Batch part = parts == 1 ? batch : rows_of(batch, first, end - first);
        const at::Tensor values = add_part(phase, part, last && i + 1 == parts, asked);
        values_.first = false;
        terms = terms.defined() ? terms + values : values.clone();
      }
      return terms;
    } catch (const std::exception& error) {
      if (!says_out_of_memory(error) || parts >= rows) throw;
    }
    asked.out_of_memory = false;
    const bool given_up = forget_pass(phase, first_batch, last);
    gave_up_ = gave_up_ || given_up;
    const bool first_time = divisions_ == 1;
    divisions_ = parts * 2;
    if (first_time) {
      log_warning(
          "{} ran out of memory: batches are worked on in {} parts from now on; the "
          "effective batch stays{}",
          device_.name(), divisions(), given_up ? ", but this step is left out" : "");
    }
    if (given_up)
      return at::zeros({static_cast<int64_t>(learner_->terms().size())}, values_.scale.options());
  }
}

// What a pass that broke off had added must not count. True: it cannot be told from what earlier
// batches of the step had added, or is on its way to other replicas already; the step is left out.
bool Replica::forget_pass(size_t phase, bool first_batch, bool last_batch) {
  const at::NoGradGuard no_grad;
  graphs_.forget();
  for (const at::Tensor& sums : learner_->sums()) at::Tensor(sums).zero_();
  GradientReducer* reducer = phases_[phase].reducer.get();
  if (reducer && reducer->break_off()) return true;
  if (first_batch) {
    for (at::Tensor gradients : phases_[phase].store->gradients()) gradients.zero_();
    return false;
  }
  phases_[phase].store->spoil_gradients();
  if (reducer && last_batch) reducer->finish();
  return true;
}

at::Tensor Replica::add_part(size_t phase, const Batch& batch, bool last,
                             const StepRequest& request) {
  if (request.out_of_memory)
    throw Error(ErrorKind::memory,
                fmt::format("{} has no memory left, on purpose", device_.name()));
  GradientReducer* reducer = last ? phases_[phase].reducer.get() : nullptr;
  const int at_phase = static_cast<int>(phase);
  const auto begin = [&]() -> PassGraphs::Shape& {
    const StepMark mark(request.observer, StepPart::copy, at_phase);
    return graphs_.begin(batch, learner_->pass_of(batch, values_) * 8 +
                                    static_cast<int64_t>(phase) * 2 + (values_.first ? 1 : 0));
  };
  PassGraphs::Shape& shape = begin();
  const Batch& inputs = graphs_.inputs(shape, batch);
  // A replayed pass calls no hooks, and one that is being captured must not set collectives off:
  // then all gradients go at the end.
  const bool captures = graphs_.replays(shape) && !graphs_.captured(shape);
  // A shape that has not passed yet may not fit the memory: what is sent cannot be taken back.
  const bool early = reducer && graphs_.passed(shape);
  if (early && learner_->pieces(phase) == 1 && !graphs_.replays(shape)) reducer->watch();
  at::Tensor terms;
  // Without other replicas nobody waits for a piece, and one graph starts sooner than several.
  const int pieces = phases_[phase].reducer ? learner_->pieces(phase) : 1;
  for (int piece = 0; piece < pieces; ++piece) {
    {
      const StepMark mark(request.observer, StepPart::pass, at_phase, piece);
      terms = graphs_.run(shape, static_cast<size_t>(piece), [&] {
        return pieces == 1 ? learner_->add_gradients(phase, inputs, values_)
                           : learner_->add_piece(phase, piece, inputs, values_);
      });
    }
    if (early && pieces > 1 && !captures) reducer->final_from(learner_->final_from(phase, piece));
  }
  graphs_.end(shape);
  if (request.poison) terms = terms * NAN;
  const StepMark mark(reducer ? request.observer : nullptr, StepPart::reduction, at_phase);
  if (reducer) reducer->finish();
  return terms;
}

at::Tensor Replica::update(size_t phase) {
  at::NoGradGuard no_grad;
  const Batch nothing;
  PassGraphs::Shape& shape = update_graphs_.begin(nothing, static_cast<int64_t>(phase));
  const at::Tensor outcome = update_graphs_.run(
      shape, 0, [&] { return phases_[phase].optimizer->step(phases_[phase].inputs); });
  update_graphs_.end(shape);
  return outcome;
}

Measured Replica::validate(const Batch& batch) {
  DeviceScope scope(device_);
  at::NoGradGuard no_grad;
  const int64_t rows = batch.fields.empty() ? 0 : batch.fields.front().size(0);
  for (;;) {
    const int64_t parts = std::clamp<int64_t>(validation_divisions_, 1, std::max<int64_t>(rows, 1));
    try {
      Measured all;
      for (int64_t i = 0; i < parts; ++i) {
        const int64_t first = rows * i / parts, end = rows * (i + 1) / parts;
        const Measured some =
            learner_->validate(parts == 1 ? batch : rows_of(batch, first, end - first));
        all.sums = i == 0 ? some.sums : all.sums + some.sums;
        all.counts = i == 0 ? some.counts : all.counts + some.counts;
        if (some.tally.defined())
          all.tally = all.tally.defined() ? all.tally + some.tally : some.tally;
      }
      return all;
    } catch (const std::exception& error) {
      if (!says_out_of_memory(error) || parts >= rows) throw;
    }
    validation_divisions_ = parts * 2;
    log_warning("{} ran out of memory: validation is done in {} parts of a batch from now on",
                device_.name(), validation_divisions_);
  }
}

void Replica::damage() {
  DeviceScope scope(device_);
  const at::NoGradGuard no_grad;
  at::Tensor weights = phases_.front().store->arenas().front().weight;
  weights.narrow(0, 0, 1).add_(1);
}

void Replica::swap_average() {
  if (config_.ema_decay <= 0) return;
  DeviceScope scope(device_);
  const Weights before = std::exchange(weights_, Weights::between);
  for (PhaseParts& phase : phases_) phase.store->swap_average();
  weights_ = before == Weights::own ? Weights::averaged : Weights::own;
}

bool Replica::take_own_weights() {
  if (weights_ == Weights::averaged) swap_average();
  return weights_ == Weights::own;
}

at::Tensor Replica::checksum() {
  DeviceScope scope(device_);
  std::vector<at::Tensor> all;
  for (const PhaseParts& phase : phases_)
    for (const AdamWBuffers& arena : phase.store->arenas())
      for (const at::Tensor& part :
           {arena.weight, arena.low, arena.mean, arena.square, arena.average})
        if (part.defined() && part.numel() > 0) all.push_back(part);
  for (const auto& [name, buffer] : learner_->buffers()) all.push_back(buffer);
  return tandem::checksum(all);
}

}  // namespace tandem
