// The two interpolations for rows of different length and place, all of it on the device.
#include <ATen/ATen.h>

#include "models/xtts/vocoder.h"

namespace tandem {
namespace {

// Where a linear interpolation reads for output places [B, count]; see vocoder_frames.cpp for the
// rounding. `last` [B, 1] is the last input of a row.
struct Reading {
  at::Tensor low, high;  // [B, count] int64
  at::Tensor part;       // float32, of `high`
};

Reading read_places(const at::Tensor& places, double scale, const at::Tensor& last,
                    const at::Tensor& copied) {
  const double step = static_cast<float>(1.0 / scale);
  at::Tensor place = ((places.to(at::kDouble) + 0.5) * step - 0.5).to(at::kFloat).clamp_min(0);
  if (copied.defined()) place = at::where(copied, places.to(at::kFloat), place);
  const at::Tensor low = at::minimum(place.floor(), last.to(at::kFloat));
  const at::Tensor index = low.to(at::kLong);
  return {index, at::minimum(index + 1, last), (place - low).clamp(0, 1)};
}

at::Tensor blend(const at::Tensor& low, const at::Tensor& high, const at::Tensor& part) {
  return low * (1 - part.unsqueeze(-1)) + high * part.unsqueeze(-1);
}

}  // namespace

at::Tensor Vocoder::frames_of(const at::Tensor& codes) const {
  return ((codes * frames_a_code).to(at::kDouble) * frame_rate_ratio).floor().to(at::kLong);
}

at::Tensor Vocoder::frames(const at::Tensor& latents, const at::Tensor& lengths,
                           const at::Tensor& first, int64_t count) const {
  const at::Tensor x = latents.to(at::kFloat);
  const at::Tensor mels = (lengths * frames_a_code).unsqueeze(1);
  const at::Tensor last = (mels - 1).clamp_min(0),
                   last_code = (lengths.unsqueeze(1) - 1).clamp_min(0);
  const auto at_codes = [&](const at::Tensor& places) {
    return x.gather(1, places.unsqueeze(-1).expand({-1, -1, x.size(2)}));
  };
  const auto at_mels = [&](const at::Tensor& places) {
    if (frames_a_code == 1) return at_codes(at::minimum(places, last_code));
    const Reading r =
        read_places(places, static_cast<double>(frames_a_code), last_code, /*copied=*/{});
    return blend(at_codes(r.low), at_codes(r.high), r.part);
  };
  const at::Tensor places = first.unsqueeze(1) + at::arange(count, first.options()).unsqueeze(0);
  const at::Tensor copied = frames_of(lengths).unsqueeze(1) == mels;  // same length: no second one
  const Reading r = read_places(places, frame_rate_ratio, last, copied);
  return blend(at_mels(r.low), at_mels(r.high), r.part)
      .transpose(1, 2)
      .to(latents.scalar_type())
      .contiguous();
}

}  // namespace tandem
