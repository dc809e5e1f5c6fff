// The body of lanes_*.cpp, each of which sets `lane_count`, `largest_radix` and the instruction set
// and then includes this. It must not use anything from the standard library: an inline function
// compiled here for a newer processor could be the copy the linker keeps for all.
#pragma once

namespace tandem {
namespace {

constexpr int W = lane_count;
typedef float V __attribute__((vector_size(4 * W)));
typedef int32_t I __attribute__((vector_size(4 * W)));
typedef float Unaligned __attribute__((vector_size(4 * W), aligned(4)));
typedef float V4 __attribute__((vector_size(16)));
typedef float U4 __attribute__((vector_size(16), aligned(4)));
typedef float V8 __attribute__((vector_size(32)));
typedef float U8 __attribute__((vector_size(32), aligned(4)));

struct Complex {
  V re, im;
};

#define INLINE __attribute__((always_inline)) static inline

INLINE void add_sub(Complex& a, Complex& b) {
  const Complex sum{a.re + b.re, a.im + b.im};
  b = {a.re - b.re, a.im - b.im};
  a = sum;
}
INLINE void turn_back(Complex& a) { a = {a.im, -a.re}; }  // times -i

INLINE void butterfly4(Complex& a, Complex& b, Complex& c, Complex& d) {
  add_sub(a, c);
  add_sub(b, d);
  turn_back(d);
  add_sub(a, b);
  add_sub(c, d);
  const Complex swapped = b;
  b = c;
  c = swapped;
}

// The DFT of R values, in order.
template <int R>
INLINE void butterfly(Complex* x) {
  if constexpr (R == 2) {
    add_sub(x[0], x[1]);
  } else if constexpr (R == 4) {
    butterfly4(x[0], x[1], x[2], x[3]);
  } else {
    constexpr float h = 0.70710678118654752f;
#pragma GCC unroll 8
    for (int i = 0; i < 4; ++i) add_sub(x[i], x[i + 4]);
    x[5] = {(x[5].re + x[5].im) * h, (x[5].im - x[5].re) * h};
    turn_back(x[6]);
    x[7] = {(x[7].im - x[7].re) * h, (x[7].re + x[7].im) * -h};
    butterfly4(x[0], x[1], x[2], x[3]);
    butterfly4(x[4], x[5], x[6], x[7]);
    const Complex y[8] = {x[0], x[4], x[1], x[5], x[2], x[6], x[3], x[7]};
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) x[i] = y[i];
  }
}

template <int R>
INLINE void store(Complex* x, V* data, int part, const float* twiddle) {
  data[0] = x[0].re;
  data[1] = x[0].im;
#pragma GCC unroll 8
  for (int m = 1; m < R; ++m) {
    const float c = twiddle[2 * m - 2], s = twiddle[2 * m - 1];
    data[2 * m * part] = x[m].re * c - x[m].im * s;
    data[2 * m * part + 1] = x[m].re * s + x[m].im * c;
  }
}

template <int R>
INLINE void fft_pass(V* data, int block, const float* twiddle) {
  const int part = block / R;
  for (int j = 0; j < part; ++j) {
    Complex x[R];
    V* at = data + 2 * j;
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) x[i] = {at[2 * i * part], at[2 * i * part + 1]};
    butterfly<R>(x);
    store<R>(x, at, part, twiddle + 2 * j * (R - 1));
  }
}

template <int R>
INLINE void fft_last_pass(V* data, int points) {
  for (int block = 0; block < points; block += R) {
    Complex x[R];
    V* at = data + 2 * block;
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) x[i] = {at[2 * i], at[2 * i + 1]};
    butterfly<R>(x);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      at[2 * i] = x[i].re;
      at[2 * i + 1] = x[i].im;
    }
  }
}

// Depth first: a block is finished while it is still in the nearest cache.
void fft_rest(const FftPlan& plan, V* data, int pass, int block) {
  const int radix = plan.radix[pass];
  if (pass + 1 == plan.passes) return;
  for (int m = 0; m < radix; ++m) {
    V* part = data + 2 * m * (block / radix);
    const int points = block / radix, next = plan.radix[pass + 1];
    if (pass + 2 == plan.passes) {
      if (next == 8)
        fft_last_pass<8>(part, points);
      else if (next == 4)
        fft_last_pass<4>(part, points);
      else
        fft_last_pass<2>(part, points);
      continue;
    }
    const float* twiddle = plan.twiddles[pass + 1];
    if (next == 8)
      fft_pass<8>(part, points, twiddle);
    else if (next == 4)
      fft_pass<4>(part, points, twiddle);
    else
      fft_pass<2>(part, points, twiddle);
    fft_rest(plan, part, pass + 1, points);
  }
}

// Windows the frames on the way into the first pass.
template <int R>
INLINE void first_pass(const MelPlan& plan, const float* turned, V* data) {
  const int part = plan.fft.points / R;
  for (int j = 0; j < part; ++j) {
    Complex x[R];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      const int n = 2 * (j + i * part);
      x[i].re = *reinterpret_cast<const Unaligned*>(turned + plan.offset[n]) * plan.window[n];
      x[i].im =
          *reinterpret_cast<const Unaligned*>(turned + plan.offset[n + 1]) * plan.window[n + 1];
    }
    butterfly<R>(x);
    store<R>(x, data + 2 * j, part, plan.fft.twiddles[0] + 2 * j * (R - 1));
  }
}

INLINE void turn_samples(const MelPlan& plan, const float* samples, float* turned) {
  const int hop = plan.hop, whole = hop / 4 * 4;
  for (int c = 0; c < plan.row; c += 4) {
    const float* from[4];  // columns beyond the last only fill up the row
#pragma GCC unroll 8
    for (int i = 0; i < 4; ++i)
      from[i] = samples + static_cast<int64_t>(hop) * (c + i < plan.columns ? c + i : 0);
    for (int r = 0; r < whole; r += 4) {
      const V4 a = *reinterpret_cast<const U4*>(from[0] + r);
      const V4 b = *reinterpret_cast<const U4*>(from[1] + r);
      const V4 x = *reinterpret_cast<const U4*>(from[2] + r);
      const V4 y = *reinterpret_cast<const U4*>(from[3] + r);
      const V4 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
               cd = __builtin_shufflevector(x, y, 0, 4, 1, 5);
      const V4 ef = __builtin_shufflevector(a, b, 2, 6, 3, 7),
               gh = __builtin_shufflevector(x, y, 2, 6, 3, 7);
      float* to = turned + static_cast<int64_t>(r) * plan.row + c;
      *reinterpret_cast<V4*>(to) = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
      *reinterpret_cast<V4*>(to + plan.row) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
      *reinterpret_cast<V4*>(to + 2 * plan.row) = __builtin_shufflevector(ef, gh, 0, 1, 4, 5);
      *reinterpret_cast<V4*>(to + 3 * plan.row) = __builtin_shufflevector(ef, gh, 2, 3, 6, 7);
    }
    for (int r = whole; r < hop; ++r)
#pragma GCC unroll 8
      for (int i = 0; i < 4; ++i) turned[static_cast<int64_t>(r) * plan.row + c + i] = from[i][r];
  }
}

template <bool Magnitude>
INLINE void put(V& bin, const V& re, const V& im) {
  const V power = re * re + im * im;
  if constexpr (Magnitude)
    bin = square_root(power);
  else
    bin = power;
}

// Two values of the real spectrum, k and half - k, from each pair of the FFT of even and odd
// samples.
template <bool Magnitude>
INLINE void spectrum(const MelPlan& plan, const V* data, V* bins) {
  const int half = plan.fft.points;
  const int32_t* position = plan.fft.position;
  const V* zero = data + 2 * position[0];
  const V* middle = data + 2 * position[half / 2];
  put<Magnitude>(bins[0], (zero[0] + zero[1]) * 2.0f, V{});
  put<Magnitude>(bins[half], (zero[0] - zero[1]) * 2.0f, V{});
  put<Magnitude>(bins[half / 2], middle[0] * 2.0f, middle[1] * 2.0f);
  for (int k = 1; k < half / 2; ++k) {
    const V* a = data + 2 * position[k];
    const V* b = data + 2 * position[half - k];
    const float c = plan.turn[2 * k], s = plan.turn[2 * k + 1];
    const V even_re = a[0] + b[0], even_im = a[1] - b[1];
    const V d_re = a[0] - b[0], d_im = a[1] + b[1];
    const V odd_re = d_im * c - d_re * s, odd_im = d_re * c + d_im * s;
    put<Magnitude>(bins[k], even_re + odd_re, even_im - odd_im);
    put<Magnitude>(bins[half - k], even_re - odd_re, even_im + odd_im);
  }
}

// ln x for normal x > 0; infinity and NaN stay. With m in [sqrt(1/2), sqrt(2)), ln(m) is f - f^2/2
// + f^3 q(f) for f = m - 1; q is a least-squares fit whose error is 8e-10 of ln(m).
INLINE V logarithm(V x) {
  const I bits = reinterpret_cast<I>(x);
  const I shifted = bits - 0x3f3504f3;  // the bits of sqrt(1/2)
  const V m = reinterpret_cast<V>(bits - (shifted & static_cast<int32_t>(0xff800000)));
  const V exponent = __builtin_convertvector(shifted >> 23, V);
  const V f = m - 1.0f, square = f * f;
  V q = f * 6.665836322e-02f - 1.162596991e-01f;
  q = q * f + 1.189736473e-01f;
  q = q * f - 1.241442015e-01f;
  q = q * f + 1.421947950e-01f;
  q = q * f - 1.666750755e-01f;
  q = q * f + 2.000210648e-01f;
  q = q * f - 2.500001761e-01f;
  q = q * f + 3.333331271e-01f;
  // ln 2 in two parts, the first with few enough bits that its product is exact.
  const V small = (q * f * square + exponent * -2.12194440e-4f) - square * 0.5f;
  const V result = (f + small) + exponent * 0.693359375f;
  const V infinity = x - x + __builtin_inff();
  return x < infinity ? result : x;
}

int64_t mel_scratch(const MelPlan& plan) {
  const int64_t bins = plan.fft.points + 1, turned = static_cast<int64_t>(plan.hop) * plan.row;
  return (2 * plan.fft.points + bins) * W + (turned + W + 15) / 16 * 16;
}

void mel_frames(const MelPlan& plan, const float* samples, float* scratch, float* out,
                int64_t stride) {
  V* data = reinterpret_cast<V*>(scratch);
  V* bins = data + 2 * plan.fft.points;
  float* turned = reinterpret_cast<float*>(bins + plan.fft.points + 1);
  turn_samples(plan, samples, turned);
  if (plan.fft.radix[0] == 8)
    first_pass<8>(plan, turned, data);
  else if (plan.fft.radix[0] == 4)
    first_pass<4>(plan, turned, data);
  else
    first_pass<2>(plan, turned, data);
  fft_rest(plan.fft, data, 0, plan.fft.points);
  if (plan.magnitude)
    spectrum<true>(plan, data, bins);
  else
    spectrum<false>(plan, data, bins);
  const float* weight = plan.weights;
  for (int m = 0; m < plan.mels; ++m) {
    const V* bin = bins + plan.first_bin[m];
    const int count = plan.bin_count[m];
    V even{}, odd{};
    int i = 0;
    for (; i + 1 < count; i += 2) {
      even += bin[i] * weight[i];
      odd += bin[i + 1] * weight[i + 1];
    }
    if (i < count) even += bin[i] * weight[i];
    weight += count;
    V x = even + odd;
    const V least = V{} + plan.clamp;
    x = (x < least ? least : x) + plan.add;
    x = logarithm(x);
    if (plan.divisor) x /= V{} + plan.divisor[m];
    *reinterpret_cast<Unaligned*>(out + m * stride) = x;
  }
}

// Vectors go by reference: how a value of 32 bytes is passed depends on the instruction set.
INLINE void dot(V8& sum, const float* a, const float* b, int taps) {
  sum = V8{};
  for (int k = 0; k < taps; k += 8)
    sum += *reinterpret_cast<const U8*>(a + k) * *reinterpret_cast<const U8*>(b + k);
}

void resample_range(const float* coefficients, const int32_t* first, int taps, int stride,
                    int phases, const float* in, int64_t from, int64_t to, float* out) {
  int phase = static_cast<int>(from % phases);
  const float* frame = in + from / phases * stride;
  const auto next = [&](V8 & sum) __attribute__((always_inline)) {
    dot(sum, coefficients + static_cast<int64_t>(phase) * taps, frame + first[phase], taps);
    if (++phase == phases) {
      phase = 0;
      frame += stride;
    }
  };
    // Neighbours in pairs of lanes, of two lanes, of four: eight sums of eight lanes each.
#define FOLD1(a, b)                                           \
  (__builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14) + \
   __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15))
#define FOLD2(a, b)                                          \
  (__builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13) + \
   __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15))
#define FOLD4(a, b)                                          \
  (__builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) + \
   __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15))
  for (; from < to; from += 8) {
    const int64_t left = to - from < 8 ? to - from : 8;
    V8 sum[8] = {};
    if (left == 8) {
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) next(sum[i]);
    } else {
      for (int i = 0; i < left; ++i) next(sum[i]);
    }
    const V8 ab = FOLD1(sum[0], sum[1]), cd = FOLD1(sum[2], sum[3]);
    const V8 ef = FOLD1(sum[4], sum[5]), gh = FOLD1(sum[6], sum[7]);
    const V8 abcd = FOLD2(ab, cd), efgh = FOLD2(ef, gh);
    const V8 all = FOLD4(abcd, efgh);
    if (left == 8)
      *reinterpret_cast<U8*>(out + from) = all;
    else
      for (int i = 0; i < left; ++i) out[from + i] = all[i];
  }
#undef FOLD1
#undef FOLD2
#undef FOLD4
}

void log_lanes(const float* in, float* out) {
  *reinterpret_cast<Unaligned*>(out) = logarithm(*reinterpret_cast<const Unaligned*>(in));
}

#undef INLINE

constexpr Lanes this_lanes(const char* name) {
  return {name, W, largest_radix, mel_scratch, mel_frames, resample_range, log_lanes};
}

}  // namespace
}  // namespace tandem
