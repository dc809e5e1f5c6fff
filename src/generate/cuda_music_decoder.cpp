#include "generate/cuda_music_decoder.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tandem/error.h"

namespace tandem {
namespace {

constexpr int64_t rows_of_a_feed = 2048;

void check_size(const MusicDecoderSize& size) {
  const auto demand = [](bool fits, const std::string& what) {
    if (fits) return;
    throw Error(ErrorKind::config, "the half precision kernels are not made for " + what)
        .hint("precision fp32 runs everything");
  };
  demand(size.activation == "gelu",
         fmt::format("the activation `{}`; expected `gelu`", size.activation));
  demand(size.width % 4 == 0 && size.width <= 2048,
         fmt::format("a width of {}; expected a multiple of 4, at most 2048", size.width));
  demand(size.head_width() % 2 == 0 && size.head_width() <= 128,
         fmt::format("heads of {}; expected an even number, at most 128", size.head_width()));
  demand(size.vocabulary <= 16384,
         fmt::format("{} codes; expected at most 16384", size.vocabulary));
}

MusicRowsWeights rows_weights(const MusicDecoder& decoder) {
  const auto norm = [](const LayerNorm& from) {
    return MusicRowsWeights::Norm{from.weight, from.bias};
  };
  const auto attention = [](const MusicDecoder::Attention& from) {
    return MusicRowsWeights::Attention{from.query, from.key, from.value, from.output};
  };
  MusicRowsWeights weights{.width = decoder.size.width, .heads = decoder.size.heads};
  for (const MusicDecoder::Block& block : decoder.blocks) {
    weights.layers.push_back({.norm_self = norm(block.norm_self),
                              .norm_cross = norm(block.norm_cross),
                              .norm_inner = norm(block.norm_inner),
                              .self = attention(block.self),
                              .cross = attention(block.cross),
                              .expand = block.expand,
                              .contract = block.contract});
  }
  weights.last_norm = norm(decoder.last_norm);
  weights.outputs = decoder.heads;
  return weights;
}

at::Tensor pinned(at::IntArrayRef shape, at::ScalarType type) {
  return at::empty(shape, at::TensorOptions().dtype(type).pinned_memory(true));
}

}  // namespace

bool MusicRoom::holds(const MusicRoom& other) const {
  return other.clips <= clips && other.columns <= columns && other.text <= text &&
         (guided || !other.guided) && (prompted || !other.prompted);
}

CudaMusicDecoder::CudaMusicDecoder(const MusicDecoder& decoder, const Options& options,
                                   c10::cuda::CUDAStream stream)
    : size_(decoder.size), options_(options), stream_(stream) {
  check_size(size_);
  rows_ = std::make_unique<MusicRows>(rows_weights(decoder), options.half, options.eight_bit_cache,
                                      options.few_rows);
  const at::Device here = stream.device();
  std::vector<at::Tensor> tables;
  for (const at::Tensor& table : decoder.embeddings) tables.push_back(table.to(here));
  embeddings_ = at::stack(tables).to(at::kFloat).contiguous();
  sinusoids_ = MusicDecoder::sinusoids(size_.positions, size_.width).to(at::kCUDA);
  if (decoder.text_projection.weight.defined()) {
    text_projection_ = {decoder.text_projection.weight.to(here),
                        decoder.text_projection.bias.to(here)};
  }
  const auto ints = at::TensorOptions(at::kCUDA).dtype(at::kInt);
  column_ = at::zeros({1}, ints);
  failed_ = at::zeros({1}, ints);
  settings_ = at::zeros({static_cast<int64_t>(sizeof(MusicDrawSettings))}, ints.dtype(at::kByte));
  room_.clips = 0;
}

void CudaMusicDecoder::release() {
  graphs_.clear();
  rows_->release();
  tokens_ = keys_ = row_place_ = feed_place_ = feed_column_ = at::Tensor();
  room_ = {};
  room_.clips = 0;
}

void CudaMusicDecoder::reserve(const MusicRoom& room) {
  if (room_.holds(room)) return;
  stream_.synchronize();
  release();
  const int64_t places = room.guided ? 2 * room.clips : room.clips;
  const bool feeds = room.prompted || !options_.use_cache;
  const int64_t rows = feeds ? std::max(rows_of_a_feed, places) : places;
  const auto ints = at::TensorOptions(at::kCUDA).dtype(at::kInt);
  try {
    rows_->reserve({.clips = room.clips,
                    .places = places,
                    .positions = room.columns - 1,
                    .text = std::max<int64_t>(room.text, 1),
                    .rows = rows,
                    .logit_rows = places});
    tokens_ = at::zeros({room.clips, size_.codebooks, room.columns}, ints);
    keys_ = at::zeros({room.clips}, ints.dtype(at::kLong));
    row_place_ = at::full({places}, -1, ints);
    feed_place_ = at::full({rows}, -1, ints);
    feed_column_ = at::zeros({rows}, ints);
  } catch (...) {
    release();
    throw;
  }
  room_ = room;
}

void CudaMusicDecoder::read_text(int64_t clip, const at::Tensor& states) {
  rows_->read_text(clip, text_projection_.weight.defined() ? text_projection_(states) : states);
}

MusicTokens CudaMusicDecoder::batch() const {
  return {.tokens = tokens_.mutable_data_ptr<int32_t>(),
          .column = column_.mutable_data_ptr<int32_t>(),
          .failed = failed_.mutable_data_ptr<int32_t>(),
          .clips = static_cast<int>(room_.clips),
          .codebooks = static_cast<int>(size_.codebooks),
          .columns = static_cast<int>(room_.columns)};
}

// Steps are captured for a few numbers of clips; the rows of those that are missing are empty.
int64_t CudaMusicDecoder::bucket_of(int64_t clips) const {
  int64_t bucket = 1;
  while (bucket < clips) bucket *= 2;
  return std::min(bucket, room_.clips);
}

void CudaMusicDecoder::queue_begin(int64_t rows, const int32_t* row_column) {
  launch_music_begin(
      {.rows = static_cast<int>(rows),
       .width = static_cast<int>(size_.width),
       .row_place = (row_column ? feed_place_ : row_place_).const_data_ptr<int32_t>(),
       .row_column = row_column,
       .batch = batch(),
       .embeddings = embeddings_.const_data_ptr<float>(),
       .embedding_rows = static_cast<int>(embeddings_.size(1)),
       .sinusoids = sinusoids_.const_data_ptr<float>(),
       .x = rows_->x().mutable_data_ptr<float>(),
       .place = rows_->place().mutable_data_ptr<int32_t>(),
       .position = rows_->position().mutable_data_ptr<int32_t>(),
       .own_row = rows_->own_row().mutable_data_ptr<int32_t>(),
       .successor_awaits = !row_column && rows_->runs_whole(rows)},
      stream_);
}

void CudaMusicDecoder::queue_step(int64_t clips, bool guided, int64_t column) {
  const int64_t rows = guided ? 2 * clips : clips;
  rows_->know_positions(column + 1);
  queue_begin(rows, nullptr);
  rows_->run(rows, clips, /*one_row_a_place=*/true, stream_);
  rows_->finish(rows, stream_);
  launch_music_draw(
      {.rows = static_cast<int>(clips),
       .codes = static_cast<int>(size_.vocabulary),
       .guided = guided,
       .logits = rows_->logits().const_data_ptr<float>(),
       .place = rows_->place().const_data_ptr<int32_t>(),
       .position = rows_->position().const_data_ptr<int32_t>(),
       .batch = batch(),
       .keys = reinterpret_cast<const uint64_t*>(keys_.const_data_ptr<int64_t>()),
       .settings = reinterpret_cast<const MusicDrawSettings*>(settings_.const_data_ptr<uint8_t>())},
      stream_);
}

CapturedGraph& CudaMusicDecoder::graph_of(int64_t clips, bool guided) {
  CapturedGraph& graph = graphs_[{clips, guided}];
  if (graph.captured()) return graph;
  // Once before, so that kernels are loaded; its rows are all empty.
  row_place_.fill_(-1);
  queue_step(clips, guided);
  graph.capture(stream_, [&] { queue_step(clips, guided); });
  ++captures_;
  return graph;
}

// Which place each row of a step is: the clips, then what they are without their captions.
void CudaMusicDecoder::put_rows(int64_t clips, int64_t bucket, bool guided) {
  at::Tensor rows = pinned({row_place_.size(0)}, at::kInt);
  rows.fill_(-1);
  auto* place = rows.mutable_data_ptr<int32_t>();
  for (int64_t clip = 0; clip < clips; ++clip) {
    place[clip] = static_cast<int32_t>(clip);
    if (guided) place[bucket + clip] = static_cast<int32_t>(room_.clips + clip);
  }
  row_place_.copy_(rows, /*non_blocking=*/true);
}

void CudaMusicDecoder::put(const Window& window) {
  const int64_t clips = window.forced.size(0), columns = window.forced.size(2);
  at::Tensor tokens = pinned(window.forced.sizes(), at::kInt);
  tokens.copy_(window.forced);
  tokens_.narrow(0, 0, clips)
      .narrow(2, 0, columns)
      .copy_(tokens.to(at::kCUDA, /*non_blocking=*/true));
  at::Tensor keys = pinned({clips}, at::kLong);
  for (int64_t i = 0; i < clips; ++i)
    keys.mutable_data_ptr<int64_t>()[i] =
        static_cast<int64_t>(music_key(window.seeds[static_cast<size_t>(i)]));
  keys_.narrow(0, 0, clips).copy_(keys, /*non_blocking=*/true);
  const MusicDrawSettings settings{.first = window.first_step - window.prompt_frames,
                                   .top_p = window.draw.top_p,
                                   .temperature = static_cast<float>(window.draw.temperature),
                                   .guidance = static_cast<float>(window.draw.guidance_scale),
                                   .top_k = static_cast<int32_t>(window.draw.top_k),
                                   .greedy = window.draw.greedy};
  at::Tensor bytes = pinned({settings_.size(0)}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr<uint8_t>(), &settings, sizeof settings);
  settings_.copy_(bytes, /*non_blocking=*/true);
  failed_.zero_();
}

// Columns `first` to `last` - 1 of all clips at once, as many as the buffers take. An 8-bit cache
// is filled a column at a time: a row's own key and value enter it while the row is computed.
void CudaMusicDecoder::feed(int64_t clips, bool guided, int64_t first, int64_t last) {
  const int64_t places = guided ? 2 * clips : clips;
  rows_->know_positions(0);
  const int64_t most =
      options_.eight_bit_cache ? 1 : std::max<int64_t>(1, feed_place_.size(0) / places);
  for (int64_t from = first; from < last; from += most) {
    const int64_t columns = std::min(most, last - from);
    at::Tensor facts = pinned({2, columns * places}, at::kInt);
    auto* place = facts.mutable_data_ptr<int32_t>();
    int32_t* column = place + columns * places;
    for (int64_t row = 0; row < columns * places; ++row) {
      const int64_t clip = row / columns;
      place[row] = static_cast<int32_t>(clip < clips ? clip : room_.clips + clip - clips);
      column[row] = static_cast<int32_t>(from + row % columns);
    }
    feed_place_.narrow(0, 0, columns * places).copy_(facts[0], /*non_blocking=*/true);
    feed_column_.narrow(0, 0, columns * places).copy_(facts[1], /*non_blocking=*/true);
    queue_begin(columns * places, feed_column_.const_data_ptr<int32_t>());
    rows_->run(columns * places, columns * clips, columns == 1, stream_);
  }
}

at::Tensor CudaMusicDecoder::decode(const Window& window) {
  const int64_t clips = window.forced.size(0), columns = window.forced.size(2);
  const bool guided = window.draw.guided();
  const int64_t bucket = bucket_of(clips), first = window.prompt_frames;
  CapturedGraph* graph = options_.capture ? &graph_of(bucket, guided) : nullptr;
  put(window);
  put_rows(clips, bucket, guided);
  at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
  begin.record(stream_);
  feed(clips, guided, 0, first);
  column_.fill_(first);
  for (int64_t column = first; column + 1 < columns; ++column) {
    if (!options_.use_cache) feed(clips, guided, 0, column);
    if (graph) {
      graph->replay(stream_);
    } else {
      queue_step(bucket, guided, column);
    }
  }
  end.record(stream_);
  at::Tensor tokens = pinned({clips, size_.codebooks, columns}, at::kInt);
  tokens.copy_(tokens_.narrow(0, 0, clips).narrow(2, 0, columns).contiguous(),
               /*non_blocking=*/true);
  at::Tensor failed = pinned({1}, at::kInt);
  failed.copy_(failed_, /*non_blocking=*/true);
  stream_.synchronize();
  steps_ += static_cast<uint64_t>(columns - 1 - first);
  seconds_ += 1e-3 * begin.elapsed_time(end);
  if (failed.const_data_ptr<int32_t>()[0] != 0)
    throw Error(ErrorKind::numeric, "a logit of the model is not a number (NaN) or not finite");
  return tokens.to(at::kLong);
}

double CudaMusicDecoder::measure_steps(int64_t clips, int64_t column, int64_t steps) {
  const int64_t bucket = bucket_of(clips);
  CapturedGraph& graph = graph_of(bucket, room_.guided);
  put_rows(clips, bucket, room_.guided);
  tokens_.fill_(-1);
  tokens_.narrow(2, 0, column + 1).fill_(0);
  column_.fill_(column);
  graph.replay(stream_);
  at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
  begin.record(stream_);
  for (int64_t i = 0; i < steps; ++i) graph.replay(stream_);
  end.record(stream_);
  stream_.synchronize();
  return 1e-3 * begin.elapsed_time(end) / static_cast<double>(steps);
}

at::Tensor CudaMusicDecoder::logits_behind(const Window& window, int64_t column) {
  const int64_t clips = window.forced.size(0), bucket = bucket_of(clips);
  const bool guided = window.draw.guided();
  put(window);
  feed(clips, guided, 0, column);
  put_rows(clips, bucket, guided);
  column_.fill_(column);
  queue_step(bucket, guided);
  const at::Tensor all =
      rows_->logits().view({rows_->logits().size(0), size_.codebooks, size_.vocabulary});
  at::Tensor logits = all.narrow(0, 0, clips);
  if (guided) logits = at::cat({logits, all.narrow(0, bucket, clips)});
  return logits.to(at::kCPU);
}

}  // namespace tandem
#endif
