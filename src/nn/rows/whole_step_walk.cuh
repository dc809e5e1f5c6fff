// One block's way through the layers of a step in one kernel.
#pragma once

#include "nn/rows/launch.cuh"
#include "nn/rows/whole_step_products.cuh"

namespace tandem::whole {

template <class H, bool music>
class Step {
 public:
  __device__ Step(const WholeStep& call, Near<H, music>& near)
      : call_(call),
        near_(near),
        qkv_(near.qkv, &near.full[0]),
        narrow_(near.narrow, &near.full[1]),
        expand_(near.expand, &near.full[2]),
        contract_(near.contract, &near.full[3]),
        row_(blockIdx.x / cluster / heads),
        head_(blockIdx.x / cluster % heads) {}

  __device__ void run() {
    begin();
    for (int i = 0; i < call_.layers; ++i) {
      Words& now = words_[i];
      make_queries(i);
      if (i == 0) forget_the_other_set();
      const WholeStepLayer& of = layer(i);
      attend(of.keys, of.values, call_.positions, near_.ends, call_.rows, now.queries, now.own,
             now.attended, now.attended_call);
      refill(i);
      now.attended_call.await(call_.rows * heads);
      add_narrow(of.project_bias, call_.rows, now.attended, now.x_self, now.x_self_call,
                 reads() ? of.cross_query : next_project(i));
      if (reads()) {
        make_text_queries(i);
        attend(of.text_keys, of.text_values, call_.text_positions, near_.text_ends, call_.reading,
               now.text_queries, nullptr, now.text_attended, now.text_attended_call);
        now.text_attended_call.await(call_.reading * heads);
        add_narrow(nullptr, call_.reading, now.text_attended, now.x_cross, now.x_cross_call,
                   next_project(i));
      }
      widen(i);
      contract(i);
    }
    end();
  }

 private:
  __device__ const WholeStepLayer& layer(int i) const { return near_.layers[i % 2]; }
  __device__ bool reads() const { return music && call_.reading > 0; }
  __device__ const void* next_project(int i) const {
    return i + 1 < call_.layers ? layer(i + 1).project : nullptr;
  }
  __device__ void fill(const Store& store, const void* weight, int bytes) const {
    if (threadIdx.x == 0 && weight)
      store.fill(static_cast<const char*>(weight) + int64_t{blockIdx.x} * bytes, bytes);
  }
  __device__ void read_layer(int i) {
    constexpr int all = sizeof(WholeStepLayer) / 8;
    static_assert(all <= threads);
    if (i < call_.layers && threadIdx.x < all)
      reinterpret_cast<uint64_t*>(&near_.layers[i % 2])[threadIdx.x] =
          __ldg(reinterpret_cast<const unsigned long long*>(call_.layer + i) + threadIdx.x);
  }

  // Asks the second-level cache for what a layer reads beside its weights: each block for some
  // lines of what all of them read, and for the positions its own head attends to.
  __device__ void call_for(int i) const {
    if (i >= call_.layers) return;
    const WholeStepLayer& then = layer(i);
    const auto lines = [&](const float* from, int floats) {
      const int line = blockIdx.x - 1 + threadIdx.x % 32 * (blocks - 1);
      if (from && blockIdx.x > 0 && line < floats / 32) call_for_line(from + line * 32);
    };
    switch (threadIdx.x / 32) {
      case 0:
        lines(then.norm_self.weight, width);
        lines(then.norm_self.bias, width);
        break;
      case 1:
        lines(then.norm_inner.weight, width);
        lines(then.norm_inner.bias, width);
        break;
      case 2:
        lines(then.norm_cross.weight, width);
        lines(then.norm_cross.bias, width);
        break;
      case 3:
        lines(then.qkv_bias, 3 * width);
        lines(then.project_bias, width);
        break;
      case 4:
        lines(then.expand_bias, inner);
        lines(then.contract_bias, width);
        break;
      default: break;
    }
    if (row_ < call_.rows)
      Sequence(then.keys, then.values, call_.positions, near_.ends[row_]).call_for_all();
    if (row_ < call_.reading)
      Sequence(then.text_keys, then.text_values, call_.text_positions, near_.text_ends[row_])
          .call_for_all();
  }

  __device__ void begin() {
    if (threadIdx.x == 0) {
      for (const Store* store : {&qkv_, &narrow_, &expand_, &contract_}) store->prepare();
#if __CUDA_ARCH__ >= 900
      show_barriers();
      show_to_products();
#endif
    }
    read_layer(0);
    read_layer(1);
    __syncthreads();
    fill(qkv_, layer(0).qkv, sizeof near_.qkv);
    fill(narrow_, layer(0).project, sizeof near_.narrow);
    fill(expand_, layer(0).expand, sizeof near_.expand);
    fill(contract_, layer(0).contract, sizeof near_.contract);
    await_predecessor();
    words_ = reinterpret_cast<Words*>(call_.words) + *call_.turn * call_.layers;
    if (static_cast<int>(threadIdx.x) < call_.rows) {
      const int place = call_.places.place[threadIdx.x];
      near_.ends[threadIdx.x] = {place, place < 0 ? -1 : call_.places.position[threadIdx.x]};
      if (static_cast<int>(threadIdx.x) < call_.reading)
        near_.text_ends[threadIdx.x] = {place, place < 0 ? -1 : call_.text_last[place]};
    }
    if (static_cast<int>(threadIdx.x) < 4 * call_.rows)
      x_ = *reinterpret_cast<const float2*>(own_x());
    arrive_at_cluster();
    __syncthreads();
    call_for(0);
    wait_for_cluster();  // the other block is there, to be written to
  }
  // For the next step. All of its words were read in the step before this one.
  __device__ void forget_the_other_set() const {
    auto* other = reinterpret_cast<uint4*>(reinterpret_cast<Words*>(call_.words) +
                                           (1 - *call_.turn) * call_.layers);
    const int64_t all = int64_t{call_.layers} * static_cast<int64_t>(sizeof(Words) / 16);
    for (int64_t i = blockIdx.x * threads + threadIdx.x; i < all; i += blocks * threads)
      other[i] = {nothing_yet, nothing_yet, nothing_yet, nothing_yet};
  }
  // A block ends when it has what all others have made of the last layer but one, so all have long
  // read whose turn it is.
  __device__ void end() const {
    if (blockIdx.x == 0 && threadIdx.x == 0) *call_.turn ^= 1u;
  }
  __device__ float* own_x() const {
    return call_.x + threadIdx.x / 4 * width + blockIdx.x * 8 + threadIdx.x % 4 * 2;
  }

  __device__ void make_queries(int i) {
    const WholeStepLayer& now = layer(i);
    const Norm norm(now.norm_self);
    const Pair<qkv_tiles> pair;
    const int column = blockIdx.x * 8 * qkv_tiles + pair.column;
    const bool real = pair.row < call_.rows;
    const float2 bias = real ? bias_at(now.qkv_bias, column) : float2{0, 0};
    if (i > 0) words_[i - 1].x_inner_call.await(blocks);
    norm.of<H>(call_.rows, near_, [&](int r) -> const uint32_t* {
      return i == 0 ? reinterpret_cast<const uint32_t*>(call_.x) + r * width
                    : words_[i - 1].x_inner[r];
    });
    float sums[qkv_tiles][4] = {};
    qkv_.await();
    multiply<H, qkv_tiles, shares>(near_.rows, call_.rows, near_.qkv, sums);
    float2 y = pair.sum(near_, sums, call_.rows);
    if (real) {
      y.x += bias.x, y.y += bias.y;
      const int which = column / width, head = column % width / pad, within = column % pad;
      if (which == 0) {
        hand_over_query(&words_[i].queries[pair.row][column], y);
      } else {
        const uint32_t bits = half_pair<H>(y.x, y.y);
        hand_over(&words_[i].own[pair.row][which - 1][column % width / 2], bits);
        const RowEnd& end = near_.ends[pair.row];
        auto* cached = static_cast<H*>(which == 1 ? now.keys : now.values);
        const int64_t at = (int64_t{end.place} * heads + head) * call_.positions + end.last;
        if (end.place >= 0) *reinterpret_cast<uint32_t*>(cached + at * pad + within) = bits;
      }
    }
  }
  // The large weights come while others attend: the words that are handed over before and after
  // would stand in line behind them.
  __device__ void refill(int i) const {
    if (i + 1 < call_.layers) fill(qkv_, layer(i + 1).qkv, sizeof near_.qkv);
    if (i == 0) return;  // begin() has filled these
    fill(expand_, layer(i).expand, sizeof near_.expand);
    fill(contract_, layer(i).contract, sizeof near_.contract);
    if (i + 1 == call_.layers) release_successor();
  }
  __device__ void make_text_queries(int i) {
    const Norm norm(layer(i).norm_cross);
    words_[i].x_self_call.await(blocks);
    norm.of<H>(call_.reading, near_, [&](int r) -> const uint32_t* { return words_[i].x_self[r]; });
    float sums[1][4] = {};
    narrow_.await();
    multiply<H, 1, shares>(near_.rows, call_.reading, near_.narrow, sums);
    const Pair<1> pair;
    const float2 y = pair.sum(near_, sums, call_.reading);
    if (pair.row < call_.reading)
      hand_over_query(&words_[i].text_queries[pair.row][blockIdx.x * 8 + pair.column], y);
    fill(narrow_, layer(i).cross_project, sizeof near_.narrow);
  }
  __device__ static void hand_over_query(uint32_t* place, float2 y) {
    const float by = rsqrtf(static_cast<float>(pad));
    hand_over(place, float2{y.x * by, y.y * by});
  }

  __device__ void attend(const void* keys, const void* values, int positions, const RowEnd* ends,
                         int rows, const uint32_t (*queries)[width],
                         const uint32_t (*own)[2][width / 2], uint32_t (*attended)[width / 2],
                         Call& call) {
    if (row_ >= rows) return;
    Attention<H, music> attention(Sequence(keys, values, positions, ends[row_]));
    attention.fetch();
    attention.sum(queries[row_] + head_ * pad, own ? own[row_][0] : nullptr, near_.sums);
    if (blockIdx.x % cluster != 0) return;
    // An empty row is waited for like the others.
    const float2 y = ends[row_].place < 0 ? float2{0, 0} : attention.merge(near_.sums);
    if (threadIdx.x < 32)
      hand_over(attended[row_] + head_ * pad / 2 + threadIdx.x, half_pair<H>(y.x, y.y));
    call.raise();
  }

  // Pairs of halves that blocks have handed over, to shared memory.
  template <int count>
  __device__ void bring_rows(const uint32_t (*from)[count], int rows) {
    constexpr int fours = count / 4, turns = (most_rows * fours + threads - 1) / threads;
    const int thread = thread_now(), mine = (rows * fours - thread + threads - 1) / threads;
    uint4 found[turns];
    const uint32_t* first = from[0] + 4 * thread;
    await_words(mine, found, [&](int turn) { return first + 4 * turn * threads; });
    auto* words = reinterpret_cast<uint32_t*>(near_.rows);
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
      if (turn >= mine) continue;
      const int i = thread + turn * threads;
      const int row = i / fours, k = i % fours * 8;
      words[word_of(row, k)] = found[turn].x;
      words[word_of(row, k + 2)] = found[turn].y;
      words[word_of(row, k + 4)] = found[turn].z;
      words[word_of(row, k + 6)] = found[turn].w;
    }
    __syncthreads();
  }

  // x += the block's 8 columns of a product; the store is then filled with `next`.
  __device__ void add_narrow(const float* bias, int rows, const uint32_t (*from)[width / 2],
                             uint32_t (*to)[width], Call& call, const void* next) {
    const float2 plus = bias_at(bias, blockIdx.x * 8 + threadIdx.x % 4 * 2);
    bring_rows(from, rows);
    float sums[1][4] = {};
    narrow_.await();
    multiply<H, 1, shares>(near_.rows, rows, near_.narrow, sums);
    add(Pair<1>{}.sum(near_, sums, rows), plus, rows, to);
    call.raise();
    fill(narrow_, next, sizeof near_.narrow);
  }
  __device__ void add(float2 y, float2 bias, int rows, uint32_t (*to)[width]) {
    if (static_cast<int>(threadIdx.x) >= 4 * rows) return;
    y.x += bias.x, y.y += bias.y;
    x_.x += y.x, x_.y += y.y;
    hand_over(to[threadIdx.x / 4] + blockIdx.x * 8 + threadIdx.x % 4 * 2, x_);
  }

  __device__ void widen(int i) {
    const Norm norm(layer(i).norm_inner);
    const Pair<wide_tiles> pair;
    const int column = blockIdx.x * 8 * wide_tiles + pair.column;
    const bool real = pair.row < call_.rows;
    const float2 bias = real ? bias_at(layer(i).expand_bias, column) : float2{0, 0};
    (reads() ? words_[i].x_cross_call : words_[i].x_self_call).await(blocks);
    norm.of<H>(call_.rows, near_, [&](int r) -> const uint32_t* {
      return reads() && r < call_.reading ? words_[i].x_cross[r] : words_[i].x_self[r];
    });
    float sums[wide_tiles][4] = {};
    expand_.await();
    multiply<H, wide_tiles, shares>(near_.rows, call_.rows, near_.expand, sums);
    float2 y = pair.sum(near_, sums, call_.rows);
    if (real) {
      y.x += bias.x, y.y += bias.y;
      hand_over(&words_[i].wide[pair.row][column / 2],
                music ? half_pair<H>(gelu_erf(y.x), gelu_erf(y.y))
                      : half_pair<H>(gelu_tanh(y.x), gelu_tanh(y.y)));
    }
    words_[i].wide_call.raise();
    call_for(i + 1);
  }

  __device__ void contract(int i) {
    const float2 bias = bias_at(layer(i).contract_bias, blockIdx.x * 8 + threadIdx.x % 4 * 2);
    words_[i].wide_call.await(blocks);
    bring_rows(words_[i].wide, call_.rows);
    float sums[1][4] = {};
    contract_.await();
    multiply<H, 1, deep_shares>(near_.rows, call_.rows, near_.contract, sums);
    add(Pair<1>{}.sum(near_, sums, call_.rows), bias, call_.rows, words_[i].x_inner);
    words_[i].x_inner_call.raise();
    if (i + 1 < call_.layers) {
      read_layer(i + 2);
    } else if (static_cast<int>(threadIdx.x) < 4 * call_.rows) {
      *reinterpret_cast<float2*>(own_x()) = x_;
    }
  }

  const WholeStep& call_;
  Near<H, music>& near_;
  Words* words_ = nullptr;  // [layers], of this step
  Store qkv_, narrow_, expand_, contract_;
  int row_, head_;     // of the attention
  float2 x_ = {0, 0};  // of the thread's row and the block's columns
};

}  // namespace tandem::whole
