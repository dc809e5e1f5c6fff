// Columns of products are shared out by block number: three tiles of query, key and value, one of
// those that add to x, so the columns of x a block adds to are always its own, four of those that
// widen. Sums run as in row_product.cu, attention as in whole_step_attention.cuh.
#include "nn/rows/whole_step.h"

#include <type_traits>

#include "nn/rows/launch.cuh"
#include "nn/rows/whole_step_attention.cuh"
#include "nn/rows/whole_step_blocks.cuh"
#include "nn/work_note.h"

namespace tandem {
namespace whole {
namespace {

constexpr int width = WholeStepSize::width, inner = WholeStepSize::inner;
constexpr int blocks = 128, most_rows = WholeStepSize::most_rows;
constexpr int qkv_tiles = 3, wide_tiles = 4;          // of 8 columns, of a block
constexpr int tile_loads = width / inner_block * 32;  // 16 bytes each
constexpr int deep_loads = inner / inner_block * 32;  // of a tile of the contraction
constexpr int shares = width / inner_block / warps;   // of the inner dimension, of a warp
constexpr int deep_shares = inner / inner_block / warps;
static_assert(blocks * 8 == width && blocks * 8 * wide_tiles == inner);
static_assert(blocks >= most_rows * heads * cluster);

template <class H, bool music>
using Attention = std::conditional_t<music, PartAttention<H>, GroupAttention<H>>;

// What the blocks hand over in one layer: floats, or pairs of halves.
struct Words {
  uint32_t queries[most_rows][width], own[most_rows][2][width / 2], attended[most_rows][width / 2],
      x_self[most_rows][width], wide[most_rows][inner / 2], x_inner[most_rows][width];
  uint32_t text_queries[most_rows][width], text_attended[most_rows][width / 2],
      x_cross[most_rows][width];
  // Of attended, x_self, wide, x_inner, text_attended and x_cross; each in a line of its own.
  Call attended_call, x_self_call, wide_call, x_inner_call, text_attended_call, x_cross_call;
};
static_assert(sizeof(Words) % 16 == 0);

template <class H, bool music>
struct Near {
  __align__(128) uint4 qkv[qkv_tiles * tile_loads];
  uint4 narrow[tile_loads];  // project, then the caption's query, then its project
  uint4 expand[wide_tiles * tile_loads];
  uint4 contract[deep_loads];
  uint2 rows[inner / 16][4 * most_rows];  // packed as tensor cores read them, rows 0 and 1 only
  float partial[warps][most_rows][8 * wide_tiles];
  typename Attention<H, music>::Memory sums;
  float scratch[16 * most_rows];
  RowEnd ends[most_rows], text_ends[most_rows];
  WholeStepLayer layers[2];
  uint64_t full[4];
};

// Where the pair of columns k and k + 1 of a row is in Near::rows, in words.
__device__ inline int word_of(int row, int k) {
  return (k / 16 * 4 * most_rows + row * 4 + k % 8 / 2) * 2 + k % 16 / 8;
}

template <class H, int tiles, int count>
__device__ void multiply(const uint2 (*rows)[4 * most_rows], int real, const uint4* weight,
                         float (&sums)[tiles][4]) {
  const int thread = thread_now(), warp = thread / 32, lane = thread % 32;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const int block = warp + warps * i;
    uint2 x[2] = {{0, 0}, {0, 0}};
    if (lane < 4 * real) x[0] = rows[2 * block][lane], x[1] = rows[2 * block + 1][lane];
#pragma unroll
    for (int n = 0; n < tiles; ++n) {
      const uint4 w = weight[(n * count * warps + block) * 32 + lane];
      multiply_tile<H>(sums[n], {x[0].x, 0, x[0].y, 0}, w.x, w.y);
      multiply_tile<H>(sums[n], {x[1].x, 0, x[1].y, 0}, w.z, w.w);
    }
  }
}

// The pair of columns a thread finishes.
template <int tiles>
struct Pair {
  int row = threadIdx.x / (4 * tiles), column = threadIdx.x % (4 * tiles) * 2;

  // The warps' sums become one; ends when every warp has read its weights and rows.
  template <class Memory>
  __device__ float2 sum(Memory& near, const float (&sums)[tiles][4], int rows) const {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (lane < 4 * rows) {
#pragma unroll
      for (int n = 0; n < tiles; ++n)
        *reinterpret_cast<float2*>(&near.partial[warp][lane / 4][n * 8 + lane % 4 * 2]) = {
            sums[n][0], sums[n][1]};
    }
    __syncthreads();
    float2 y = {0, 0};
    if (row >= rows) return y;
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      const float2 part = *reinterpret_cast<const float2*>(&near.partial[w][row][column]);
      y.x += part.x;
      y.y += part.y;
    }
    return y;
  }
};

__device__ inline float2 bias_at(const float* bias, int column) {
  return bias ? float2{__ldg(bias + column), __ldg(bias + column + 1)} : float2{0, 0};
}
// A norm's weight and bias, fetched before its rows are there.
struct Norm {
  BlockRow<1> scale, shift;
  __device__ explicit Norm(const RowNorm& norm) {
    scale.load(norm.weight, width);
    shift.load(norm.bias, width);
  }
  // Of rows of float words, where `row(r)` says, packed into shared memory.
  template <class H, class Memory, class Row>
  __device__ void of(int rows, Memory& near, const Row& row) const {
    const int thread = thread_now();
    uint4 words_of[most_rows];
    await_words(rows, words_of, [&](int r) { return row(r) + 4 * thread; });
    BlockRow<1> values[most_rows];
#pragma unroll
    for (int r = 0; r < most_rows; ++r)
      if (r < rows)
        values[r].value[0] = {__uint_as_float(words_of[r].x), __uint_as_float(words_of[r].y),
                              __uint_as_float(words_of[r].z), __uint_as_float(words_of[r].w)};
    BlockRow<1>::template normalise_all<most_rows>(values, rows, scale, shift, width, near.scratch);
    auto* words = reinterpret_cast<uint32_t*>(near.rows);
#pragma unroll
    for (int r = 0; r < most_rows; ++r) {
      if (r >= rows) continue;
      const float4& v = values[r].value[0];
      words[word_of(r, 4 * thread)] = half_pair<H>(v.x, v.y);
      words[word_of(r, 4 * thread + 2)] = half_pair<H>(v.z, v.w);
    }
    __syncthreads();
  }
};

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

template <class H, bool music>
__global__ void __launch_bounds__(threads, 1) whole_step(const __grid_constant__ WholeStep call) {
  extern __shared__ __align__(128) unsigned char memory[];
  Step<H, music>(call, *reinterpret_cast<Near<H, music>*>(memory)).run();
}

template <class Kernel>
cudaLaunchConfig_t config_of(Kernel kernel, size_t shared, cudaLaunchAttribute (&attributes)[3],
                             cudaStream_t stream) {
  C10_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(shared)));
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim.x = cluster;
  attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
  // All blocks at once or none: two such kernels beside each other would otherwise each hold some
  // of the multiprocessors and wait for the rest.
  attributes[1].id = cudaLaunchAttributeCooperative;
  attributes[1].val.cooperative = 1;
  // It may start while the kernel before it runs, and fetches its first weights meanwhile.
  attributes[2].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[2].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 3;
  return config;
}

// By half and kind of model.
template <class Do>
auto with_kernel(RowHalf half, bool music, Do&& use) {
  const auto of = [&]<class H>(H) {
    return music ? use(whole_step<H, true>, sizeof(Near<H, true>))
                 : use(whole_step<H, false>, sizeof(Near<H, false>));
  };
  return half == RowHalf::fp16 ? of(__half{}) : of(__nv_bfloat16{});
}

bool all_fit_at_once() {
  if (device_attribute(cudaDevAttrComputeCapabilityMajor) != 9 ||
      !device_attribute(cudaDevAttrCooperativeLaunch))
    return false;
  const int shared = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  return with_kernel(RowHalf::fp16, true, [&](auto kernel, size_t bytes) {
    if (bytes > static_cast<size_t>(shared)) return false;
    cudaLaunchAttribute attributes[3] = {};
    const cudaLaunchConfig_t config = config_of(kernel, bytes, attributes, nullptr);
    int clusters = 0;
    if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) != cudaSuccess) {
      cudaGetLastError();
      return false;
    }
    return clusters * cluster >= blocks;
  });
}

}  // namespace
}  // namespace whole

int64_t whole_step_words(int64_t layers) {
  return 2 * layers * static_cast<int64_t>(sizeof(whole::Words) / sizeof(uint32_t));
}

bool whole_step_runs(int rows, int64_t width, int64_t heads, int64_t inner) {
  if (rows > WholeStepSize::most_rows || width != WholeStepSize::width ||
      heads != WholeStepSize::heads || inner != WholeStepSize::inner)
    return false;
  thread_local int known_device = -1;
  thread_local bool runs = false;
  int device = 0;
  C10_CUDA_CHECK(cudaGetDevice(&device));
  if (device != known_device) runs = whole::all_fit_at_once(), known_device = device;
  return runs;
}

void launch_whole_step(const WholeStep& call, cudaStream_t stream) {
  const double wide = WholeStepSize::width,
               products = wide * (4 * wide + 2.0 * WholeStepSize::inner),
               text = call.reading > 0 ? 2 * wide * wide : 0;
  const WorkNote note("tandem::whole::whole_step",
                      call.layers * (2 * call.rows * products + 2 * call.reading * text +
                                     4 * call.positions_read * wide),
                      call.layers * (2 * (products + text) + 4 * call.positions_read * wide));
  whole::with_kernel(call.half, call.music, [&](auto kernel, size_t bytes) {
    cudaLaunchAttribute attributes[3] = {};
    const cudaLaunchConfig_t config = whole::config_of(kernel, bytes, attributes, stream);
    C10_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, call));
    return true;
  });
}

}  // namespace tandem
