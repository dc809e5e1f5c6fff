#include "models/musicgen/cuda_codec.h"

#include <algorithm>

#include "tandem/error.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "nn/conv/codec_kernels.h"
#include "nn/conv/codec_pack.h"
#endif

namespace tandem {
namespace {

constexpr int64_t most_clips = 32;            // of a group; codec_lstm_most_clips
constexpr int64_t most_group_frames = 65536;  // of all clips of a group together, or one clip
constexpr int64_t most_rows = 8192;           // of the LSTM's input products at once
constexpr int64_t most_frames = 3072;         // of the convolutions behind it at once

int64_t lstm_width(const EncodecSize& size) {
  return size.filters << static_cast<int64_t>(size.ratios.size());
}

// Elements of each buffer.
struct BufferSizes {
  int64_t vectors = 0, first = 0, gates = 0, hidden = 0, cells = 0, joined = 0;
  int64_t wide = 0, inner = 0, active = 0, sound = 0;

  BufferSizes(const EncodecSize& size, int64_t frames, int64_t clips) {
    const int64_t width = lstm_width(size), group = std::min(clips, most_clips);
    const int64_t group_frames = std::max(frames, std::min(most_group_frames, group * frames));
    const int64_t rows = std::min(most_rows, group * frames);
    vectors = group_frames * size.hidden;
    first = rows * width;
    gates = rows * 4 * width;
    hidden = (rows + group) * width;
    cells = 2 * group * width;
    joined = group_frames * width;
    int64_t positions = 1, channels = width, widest = 0;
    for (const int64_t ratio : size.ratios) {
      positions *= ratio;
      channels /= 2;
      widest = std::max(widest, positions * channels);
    }
    const int64_t together = std::min(most_frames, group_frames);
    wide = active = together * widest;
    inner = together * widest / 2;
    sound = clips * frames * positions;
  }
  int64_t bytes() const {
    return 2 * (vectors + 2 * hidden + joined + inner + active) +
           4 * (first + gates + cells + wide + sound);
  }
};

}  // namespace

bool CudaCodec::fits(const EncodecSize& size) {
  const int64_t width = lstm_width(size), stages = static_cast<int64_t>(size.ratios.size());
  int64_t hop = 1;
  for (const int64_t ratio : size.ratios) hop *= ratio;
  return size.channels == 1 && !size.causal && size.padding == "reflect" &&
         size.residual_layers == 1 && !size.shortcut_conv && size.compress == 2 &&
         size.lstm_layers == 2 && (width == 256 || width == 512 || width == 1024) && stages >= 1 &&
         size.filters % 64 == 0 && size.hidden % 32 == 0 && size.codebook_width == size.hidden &&
         size.kernel <= 31 && size.residual_kernel <= 31 && size.last_kernel == 7 && hop >= 8 &&
         hop <= 4096 && *std::min_element(size.ratios.begin(), size.ratios.end()) >= 2;
}

int64_t CudaCodec::bytes(const EncodecSize& size, int64_t frames, int64_t clips) {
  int64_t channels = lstm_width(size);
  int64_t halves = size.kernel * size.hidden * channels + 4 * 4 * channels * channels;
  for (const int64_t ratio : size.ratios) {
    halves += 2 * ratio * channels * channels / 2;
    channels /= 2;
    halves += (size.residual_kernel + 1) * channels * channels / 2;
  }
  const int64_t vectors = size.codebooks * size.codebook_size * size.codebook_width;
  return BufferSizes(size, frames, clips).bytes() + 2 * halves + 4 * vectors;
}

#ifdef TANDEM_WITH_CUDA
static_assert(most_clips == codec_lstm_most_clips);

class CudaCodec::Layers {
 public:
  Layers(const Encodec& codec, int64_t frames, int64_t clips)
      : size_(codec.size),
        frames_(frames),
        clips_(clips),
        width_(lstm_width(codec.size)),
        hopper_(hopper_conv_runs()),
        first_(pack(codec.decoder.first)),
        group_(codec_lstm_clips(static_cast<int>(width_))) {
    for (const EncodecLstm::Layer& layer : codec.decoder.lstm.layers)
      lstm_.push_back(
          pack_codec_lstm(layer.input, layer.hidden, layer.input_bias, layer.hidden_bias, hopper_));
    // How far the samples of one frame reach into others, from the last layer back.
    halo_ = size_.last_kernel / 2;
    for (size_t i = codec.decoder.stages.size(); i-- > 0;) {
      const int64_t rate = codec.decoder.stages[i].scale.stride;
      halo_ = (halo_ + size_.residual_kernel / 2 + rate - 1) / rate + 1;
      hop_ *= rate;
    }
    for (const Encodec::Stage& stage : codec.decoder.stages) {
      const std::vector<EncodecConv>& convs = stage.residuals.at(0).convs;
      stages_.push_back(
          {pack_transposed_conv(stage.scale.weight, stage.scale.bias, stage.scale.stride, hopper_),
           pack(convs.at(0)), pack(convs.at(1)), static_cast<int>(stage.scale.stride)});
    }
    const at::Tensor last = conv_floats(codec.decoder.last.weight)[0];  // [channels, taps]
    last_ = at::constant_pad_nd(last, {0, 8 - last.size(1)}).contiguous();
    last_bias_ = conv_floats(codec.decoder.last.bias);
    std::vector<at::Tensor> books;
    for (const at::Tensor& book : codec.codebooks) books.push_back(conv_floats(book));
    vectors_ = at::stack(books);

    const BufferSizes sizes(size_, frames, clips);
    const auto floats = at::TensorOptions(at::kCUDA).dtype(at::kFloat);
    const auto halves = floats.dtype(at::kHalf);
    frame_vectors_ = at::empty({sizes.vectors}, halves);
    first_out_ = at::empty({sizes.first}, floats);
    gates_ = at::empty({sizes.gates}, floats);
    for (at::Tensor& hidden : hidden_) hidden = at::empty({sizes.hidden}, halves);
    cells_ = at::empty({sizes.cells}, floats);
    joined_ = at::empty({sizes.joined}, halves);
    wide_ = at::empty({sizes.wide}, floats);
    inner_ = at::empty({sizes.inner}, halves);
    active_ = at::empty({sizes.active}, halves);
    sound_ = at::empty({sizes.sound}, floats);
    C10_CUDA_CHECK(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
    // Other streams will read what this one has packed.
    c10::cuda::getCurrentCUDAStream().synchronize();
  }
  ~Layers() {
    cudaEventSynchronize(done_);
    cudaEventDestroy(done_);
  }

  const at::Tensor& decode(const at::Tensor& codes, cudaStream_t stream) {
    const bool wide = codes.scalar_type() == at::kLong;
    if (!codes.is_cuda() || codes.dim() != 3 || (!wide && codes.scalar_type() != at::kInt) ||
        codes.size(0) < 1 || codes.size(0) > clips_ || codes.size(1) < 1 ||
        codes.size(1) > vectors_.size(0) || codes.size(2) < 1 || codes.size(2) > frames_) {
      throw Error(ErrorKind::internal,
                  "codes for the sound are not what the decoder of the sound was made for");
    }
    // The buffers may still be in use on another stream.
    if (stream != last_stream_) C10_CUDA_CHECK(cudaStreamWaitEvent(stream, done_, 0));
    last_stream_ = stream;
    const int64_t clips = codes.size(0), frames = codes.size(2);
    const int64_t group =
        std::min<int64_t>(group_, std::max<int64_t>(1, most_group_frames / frames));
    for (int64_t from = 0; from < clips; from += group) {
      const int64_t count = std::min(group, clips - from);
      launch_codec_vectors(
          {.clips = static_cast<int>(count),
           .frames = static_cast<int>(frames),
           .codebooks = static_cast<int>(codes.size(1)),
           .codebook_size = static_cast<int>(vectors_.size(1)),
           .width = static_cast<int>(vectors_.size(2)),
           .codes = static_cast<const char*>(codes.const_data_ptr()) +
                    from * codes.stride(0) * static_cast<int64_t>(codes.element_size()),
           .wide = wide,
           .clip_stride = codes.stride(0),
           .book_stride = codes.stride(1),
           .frame_stride = codes.stride(2),
           .vectors = vectors_.const_data_ptr<float>(),
           .half_out = frame_vectors_.mutable_data_ptr()},
          stream);
      remember(count, frames, stream);
      convolve(count, frames, sound_.mutable_data_ptr<float>() + from * frames * hop_, stream);
    }
    C10_CUDA_CHECK(cudaEventRecord(done_, stream));
    made_ = sound_.narrow(0, 0, clips * frames * hop_).view({clips, frames * hop_});
    return made_;
  }

 private:
  struct Stage {
    PackedConv up, first, second;
    int rate = 2;
  };

  PackedConv pack(const EncodecConv& layer) const {
    // Narrow layers wait for memory; the larger blocks of mma.sync's kernel keep it busier.
    const bool narrow = std::min(layer.weight.size(0), layer.weight.size(1)) <= 32;
    return pack_conv(layer.weight, layer.bias, hopper_ && !narrow);
  }
  static at::Half* half(const at::Tensor& buffer) { return buffer.mutable_data_ptr<at::Half>(); }

  static ConvCall layer(const PackedConv& packed, int64_t clips, int64_t length) {
    ConvCall call = packed.call();
    call.clips = static_cast<int>(clips);
    call.reflect = true;
    call.length = call.rows = static_cast<int>(length);
    call.in_stride = length * packed.channels;
    call.out_stride = length * packed.columns;
    return call;
  }

  // The first convolution and the LSTM, a stretch of frames at a time: elu(LSTM(x) + x) of all
  // frames to joined_.
  void remember(int64_t clips, int64_t frames, cudaStream_t stream) {
    const int64_t row = clips * width_, gate_row = 4 * width_;
    const int64_t stretch = std::min(frames, std::max<int64_t>(1, most_rows / clips));
    C10_CUDA_CHECK(cudaMemsetAsync(cells_.mutable_data_ptr(), 0, sizeof(float) * 2 * row, stream));
    for (int64_t from = 0; from < frames; from += stretch) {
      const int64_t steps = std::min(stretch, frames - from);
      for (const at::Tensor& hidden : hidden_) {
        at::Half* states = half(hidden);
        if (from == 0) {
          C10_CUDA_CHECK(cudaMemsetAsync(states, 0, sizeof(at::Half) * row, stream));
        } else {
          C10_CUDA_CHECK(cudaMemcpyAsync(states, states + stretch * row, sizeof(at::Half) * row,
                                         cudaMemcpyDeviceToDevice, stream));
        }
        C10_CUDA_CHECK(
            cudaMemsetAsync(states + row, codec_unwritten, sizeof(at::Half) * steps * row, stream));
      }
      ConvCall begin = layer(first_, clips, frames);
      begin.first_row = static_cast<int>(from);
      begin.rows = static_cast<int>(steps);
      begin.half_in = frame_vectors_.const_data_ptr();
      begin.out = first_out_.mutable_data_ptr<float>();
      begin.out_stride = steps * width_;
      launch_conv(begin, stream);

      // Rows are [clip, step] here and [step, clip] behind the first layer.
      ConvCall product = layer(lstm_[0].input, 1, clips * steps);
      product.in = first_out_.const_data_ptr<float>();
      product.out = gates_.mutable_data_ptr<float>();
      launch_conv(product, stream);
      CodecLstm call = lstm_layer(0, clips, steps);
      call.gate_clip_stride = steps * gate_row;
      call.gate_step_stride = gate_row;
      launch_codec_lstm(call, stream);

      product = layer(lstm_[1].input, 1, clips * steps);
      product.half_in = half(hidden_[0]) + row;
      product.out = gates_.mutable_data_ptr<float>();
      launch_conv(product, stream);
      call = lstm_layer(1, clips, steps);
      call.gate_clip_stride = gate_row;
      call.gate_step_stride = clips * gate_row;
      call.skip = first_out_.const_data_ptr<float>();
      call.skip_stride = steps * width_;
      call.half_out = half(joined_) + from * width_;
      call.out_stride = frames * width_;
      launch_codec_lstm(call, stream);
    }
  }

  CodecLstm lstm_layer(size_t index, int64_t clips, int64_t steps) const {
    CodecLstm call;
    call.clips = static_cast<int>(clips);
    call.width = static_cast<int>(width_);
    call.steps = static_cast<int>(steps);
    call.gates = gates_.const_data_ptr<float>();
    call.weight = lstm_[index].hidden.const_data_ptr();
    call.cell = cells_.mutable_data_ptr<float>() + static_cast<int64_t>(index) * clips * width_;
    call.hidden = half(hidden_[index]);
    return call;
  }

  // Several whole clips at a time, or one clip in windows that reach `halo_` frames beyond what is
  // kept of them: what is wrong at a window's end does not come further.
  void convolve(int64_t clips, int64_t frames, float* sound, cudaStream_t stream) {
    const int64_t together = std::max<int64_t>(1, most_frames / frames);
    const int64_t kept = frames <= most_frames ? frames : most_frames - 2 * halo_;
    for (int64_t clip = 0; clip < clips; clip += together) {
      for (int64_t first = 0; first < frames; first += kept) {
        const int64_t last = std::min(frames, first + kept);
        const int64_t from = std::max<int64_t>(0, first - halo_);
        window({.clips = std::min(together, clips - clip),
                .from = from,
                .to = std::min(frames, last + halo_),
                .first = first,
                .last = last},
               half(joined_) + (clip * frames + from) * width_, frames * width_,
               sound + (clip * frames + first) * hop_, frames * hop_, stream);
      }
    }
  }

  struct Window {
    int64_t clips, from, to, first, last;  // frames computed, frames kept
  };
  void window(const Window& of, const at::Half* in, int64_t in_stride, float* sound,
              int64_t sound_stride, cudaStream_t stream) {
    int64_t length = of.to - of.from;
    for (const Stage& stage : stages_) {
      ConvCall up = layer(stage.up, of.clips, length);
      up.reflect = false;
      up.rows = static_cast<int>(length) + 1;  // the last positions' second tap
      up.half_in = in;
      up.in_stride = in_stride;
      up.rate = stage.rate;
      up.shift = stage.rate - stage.rate / 2;
      up.out = wide_.mutable_data_ptr<float>();
      launch_conv(up, stream);

      length *= stage.rate;
      ConvCall narrow = layer(stage.first, of.clips, length);
      narrow.in = wide_.const_data_ptr<float>();
      narrow.activation = Activation::elu;
      narrow.half_out = half(inner_);
      launch_conv(narrow, stream);

      ConvCall widen = layer(stage.second, of.clips, length);
      widen.half_in = half(inner_);
      widen.activation = Activation::elu;
      widen.residual = wide_.const_data_ptr<float>();
      widen.half_out = half(active_);
      launch_conv(widen, stream);
      in = half(active_);
      in_stride = length * stage.second.columns;
    }
    launch_codec_wave({.clips = static_cast<int>(of.clips),
                       .channels = static_cast<int>(last_.size(0)),
                       .half_in = in,
                       .length = static_cast<int>(length),
                       .first = static_cast<int>((of.first - of.from) * hop_),
                       .count = static_cast<int>((of.last - of.first) * hop_),
                       .weight = last_.const_data_ptr<float>(),
                       .bias = last_bias_.const_data_ptr<float>(),
                       .out = sound,
                       .out_stride = sound_stride},
                      stream);
  }

  const EncodecSize size_;
  const int64_t frames_, clips_, width_;
  const bool hopper_;
  int64_t halo_ = 0, hop_ = 1;
  PackedConv first_;
  const int64_t group_;
  std::vector<PackedCodecLstm> lstm_;
  std::vector<Stage> stages_;
  at::Tensor last_, last_bias_, vectors_;
  at::Tensor frame_vectors_, first_out_, gates_, hidden_[2], cells_, joined_, wide_, inner_,
      active_, sound_, made_;
  cudaEvent_t done_ = nullptr;
  cudaStream_t last_stream_ = nullptr;
};
#else
class CudaCodec::Layers {
 public:
  Layers(const Encodec&, int64_t, int64_t) {
    throw Error(ErrorKind::device, "this build of tandem has no CUDA");
  }
  const at::Tensor& decode(const at::Tensor& codes, CUstream_st*) { return codes; }
};
#endif

CudaCodec::CudaCodec(const Encodec& codec, int64_t frames, int64_t clips) {
  if (!fits(codec.size) || frames < 1 || clips < 1) {
    throw Error(ErrorKind::internal, "the fast decoder of sound has no kernels for this codec");
  }
  layers_ = std::make_unique<Layers>(codec, frames, clips);
}
CudaCodec::~CudaCodec() = default;

const at::Tensor& CudaCodec::decode(const at::Tensor& codes, CUstream_st* stream) {
  return layers_->decode(codes, stream);
}

}  // namespace tandem
