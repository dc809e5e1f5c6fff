#include "train/batches/code_source.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "data/feed/clip_shape.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "models/xtts/code_cache.h"
#include "tandem/error.h"
#include "train/batches/clip_codes.h"
#include "util/log.h"

namespace tandem {

CodeSource::CodeSource(const SpeechFeed& speech, const DvaeEncoder& dvae, int64_t stride,
                       bool like_coqui)
    : speech_(speech),
      source_(dvae),
      stride_(stride),
      like_coqui_(like_coqui),
      memo_(speech.order, speech.corpus.index().size(), at::kInt,
            [this](size_t bucket) { return width_of(bucket); }) {
  const SpeechOptions& options = speech.batches.options();
  if (!options.waves || options.mel != mel_xtts_dvae())
    throw Error(ErrorKind::internal,
                "codes were asked of a feed without waves and the DVAE's mels");
  const int64_t own = int64_t{options.mel.hop} << dvae.strided.size();
  if (own != stride) {
    throw Error(ErrorKind::config, fmt::format("the DVAE's codes are of {} samples, the model's of "
                                               "{}: they do not belong together",
                                               own, stride));
  }
  if (may_keep()) open_cache();
}

// Other codes each epoch, or in other company, cannot be kept.
bool CodeSource::may_keep() const { return !like_coqui_ && !speech_.batches.options().augments(); }

void CodeSource::open_cache() {
  const std::string path = code_cache_path(speech_.corpus.path());
  if (speech_.corpus.path().empty() || !std::filesystem::exists(path)) return;
  try {
    cache_.emplace(ClipCache::open(path));
  } catch (const Error& error) {
    log_warning("{}; codes are computed", error.what());
    return;
  }
  recipe_ = code_recipe(speech_.batches.options(), source_);
  int64_t held = 0, all = 0;
  for (const Bucket& bucket : speech_.order.buckets()) {
    for (const int64_t clip : bucket.clips)
      held += cache_->find(clip_cache_key(speech_.corpus.index()[clip], recipe_)).has_value();
    all += static_cast<int64_t>(bucket.clips.size());
  }
  if (held == all) return;
  log_info("`{}` holds codes of this DVAE for {} of {} clips: they are computed", path, held, all);
  cache_.reset();
}

int64_t CodeSource::width_of(size_t bucket) const {
  return codes_of(speech_.batches.samples_of(bucket));
}

void CodeSource::read(int64_t clip, int64_t* out, int64_t most) const {
  const auto entry = cache_->find(clip_cache_key(speech_.corpus.index()[clip], recipe_));
  thread_local std::vector<float> codes;
  try {
    if (!entry || entry->rows != 1)
      throw Error(ErrorKind::corrupt, fmt::format("the cache has lost the codes of clip {}", clip));
    codes.resize(static_cast<size_t>(entry->columns));
    cache_->read(*entry, codes.data(), entry->columns);
    std::copy_n(codes.begin(), std::min<int64_t>(most, entry->columns), out);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) throw;
    log_warning("{}; the codes of this clip are computed", error.what());
    const at::NoGradGuard no_grad;
    const SpeechOptions& options = speech_.batches.options();
    const at::Tensor mels = log_mel(read_clip(speech_.corpus.index(), clip, options), options.mel);
    const at::Tensor made = codes_of_clips(source_, mels, {mels.size(2)}).contiguous();
    std::copy_n(made.const_data_ptr<int64_t>(), std::min(most, made.size(1)), out);
  }
}

at::Tensor CodeSource::encode(const SpeechBatch& speech) {
  LogicalDevice* here = DeviceScope::current();
  if (!dvae_ || device_ != here) {
    dvae_ = encoder_here(source_);
    device_ = here;
    memo_.forget();
  }
  if (memo_.knows(speech)) return memo_.get(speech).to(at::kLong);
  RECORD_FUNCTION("tandem::codes", std::vector<c10::IValue>{});
  ++encoded_;
  const at::Tensor codes = run_encoder(speech);
  if (may_keep()) memo_.keep(speech, codes);
  return codes;
}

at::Tensor CodeSource::run_encoder(const SpeechBatch& speech) {
  const int64_t width = width_of(speech.bucket);
  at::Tensor codes;
  if (like_coqui_) {
    const std::vector<int64_t>& lengths = speech.waves.lengths;
    const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
    const Waves filled{speech.waves.samples.narrow(1, 0, longest),
                       std::vector<int64_t>(lengths.size(), longest), speech.waves.sample_rate};
    const at::Tensor mels = log_mel(filled, speech_.batches.options().mel);
    codes = codes_of_clips(*dvae_, mels, std::vector<int64_t>(lengths.size(), mels.size(2)));
  } else {
    codes = codes_of_clips(*dvae_, speech.batch.fields[speech_mels], speech.mel_lengths);
  }
  if (codes.size(1) >= width) return codes.narrow(1, 0, width);
  return at::constant_pad_nd(codes, {0, width - codes.size(1)});
}

}  // namespace tandem
