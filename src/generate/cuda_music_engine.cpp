// The engine on a GPU: captions are read one at a time in float32, codes decoded in half precision
// (cuda_music_decoder.h), sound made on a stream of its own beside the next batch
// (cuda_music_sound.h). All memory of a batch is taken before it begins.
#include "generate/music_engine.h"

#include "tandem/error.h"

#ifdef TANDEM_WITH_CUDA
#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <fmt/format.h>

#include <algorithm>

#include "device/cuda_owner.h"
#include "device/device_scope.h"
#include "device/logical_device.h"
#include "device/torch_errors.h"
#include "generate/cuda_caption_reader.h"
#include "generate/cuda_music_decoder.h"
#include "generate/cuda_music_sound.h"
#include "generate/music_checks.h"
#include "generate/music_observer.h"
#include "generate/music_windows.h"
#include "models/musicgen/delay_pattern.h"
#include "models/musicgen/musicgen.h"

namespace tandem {
namespace {

CudaMusicDecoder::Options decoder_options(const MusicEngineOptions& options) {
  if (options.precision != "auto" && options.precision != "fp16" && options.precision != "bf16") {
    throw Error(ErrorKind::config,
                fmt::format("precision is `{}`; the half precision kernels expect auto, fp16 or "
                            "bf16",
                            options.precision));
  }
  if (options.cache != "same" && options.cache != "int8") {
    throw Error(ErrorKind::config,
                fmt::format("the cache is `{}`; expected same or int8", options.cache));
  }
  return {.half = options.precision == "bf16" ? RowHalf::bf16 : RowHalf::fp16,
          .eight_bit_cache = options.cache == "int8",
          .use_cache = options.use_cache,
          .capture = options.capture};
}

class CudaMusicEngine final : public MusicEngine {
 public:
  CudaMusicEngine(const Musicgen& model, LogicalDevice& device, const MusicEngineOptions& options)
      : config_(model.config), device_(device), stream_(raw_cuda_stream(device.compute_stream())) {
    translated([&] {
      const Here here(*this);
      captions_ = std::make_unique<CudaCaptionReader>(model.text, device_, options.capture);
      decoder_ =
          std::make_unique<CudaMusicDecoder>(model.decoder, decoder_options(options), stream_);
      sound_ = std::make_unique<CudaMusicSound>(model.codec, config_.decoder, device_,
                                                options.pin_memory);
    });
  }

  ~CudaMusicEngine() override {
    sound_.reset();
    const Here here(*this);
    stream_.synchronize();
    captions_.reset();
    decoder_.reset();
  }

  void generate(std::vector<MusicRequest> batch, const MusicOptions& options, Done done) override {
    sound_->rethrow_failure();
    if (batch.empty()) return;
    const int64_t prompted = check_music_batch(batch, options, config_);
    const std::vector<MusicWindow> windows = music_windows(config_.decoder, options, prompted);
    at::Tensor codes;
    translated([&] {
      const Here here(*this);
      take_memory(batch, options, windows);
      {
        const MusicMark mark(observer_, MusicPart::captions, device_.compute_stream());
        for (size_t i = 0; i < batch.size(); ++i)
          decoder_->read_text(static_cast<int64_t>(i), (*captions_)(batch[i].text_ids));
      }
      const MusicMark mark(observer_, MusicPart::decoding, device_.compute_stream());
      codes = decode(batch, options, windows, prompted);
    });
    sound_->put(std::move(codes), std::move(done), observer_);
    turning_ = observer_ != nullptr;
    ++batches_;
    clips_ += batch.size();
  }

  void finish() override {
    sound_->wait();
    sound_->rethrow_failure();
    if (std::exchange(turning_, false)) observer_->end(device_.preparation_stream());
  }

  MusicCounters counters() const override {
    return {.batches = batches_,
            .clips = clips_,
            .steps = decoder_->steps(),
            .captures = decoder_->captures(),
            .decode_seconds = decoder_->seconds(),
            .sound_seconds = sound_->seconds()};
  }

  void observe(MusicObserver* observer) override { observer_ = observer; }

  std::vector<std::pair<std::string, uint64_t>> bytes_by_part() const override {
    return {{"caption reader", captions_->weight_bytes()},
            {"decoder's weights", static_cast<uint64_t>(decoder_->rows().weight_bytes())},
            {"keys and values", static_cast<uint64_t>(decoder_->rows().cache_bytes())},
            {"codec's weights", sound_->weight_bytes()}};
  }

 private:
  // The device's scope, its stream, and no gradients.
  struct Here {
    explicit Here(CudaMusicEngine& engine) : scope(engine.device_), guard(engine.stream_) {}
    at::NoGradGuard no_gradients;
    DeviceScope scope;
    c10::cuda::CUDAStreamGuard guard;
  };

  template <class Work>
  void translated(const Work& work) {
    try {
      work();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      const Explanation why = explain_with_torch(error);
      if (why.kind == ErrorKind::memory) throw Error(ErrorKind::memory, why.sentence);
      throw Error(ErrorKind::device, fmt::format("{} failed: {}", device_.name(), why.sentence));
    }
  }

  static bool is_memory(const std::exception& error) {
    return explain_with_torch(error).kind == ErrorKind::memory;
  }

  // Where it does not fit, everything is given back and tried once more: what is left of another
  // shape may stand in the way.
  void take_memory(const std::vector<MusicRequest>& batch, const MusicOptions& options,
                   const std::vector<MusicWindow>& windows) {
    MusicRoom room{.clips = static_cast<int64_t>(batch.size()),
                   .text = options.longest_text,
                   .guided = draw_options_of(options.sampling).guided()};
    for (const MusicWindow& window : windows) {
      room.columns = std::max(room.columns, 1 + window.prompt_frames + window.new_tokens);
      room.prompted |= window.prompt_frames > 0;
    }
    const int64_t frames = windows.back().first_frame + windows.back().frames;
    const auto take = [&] {
      decoder_->reserve(room);
      sound_->reserve(frames, room.clips);
    };
    try {
      take();
    } catch (const std::exception& error) {
      if (!is_memory(error)) throw;
      give_back();
      try {
        take();
      } catch (const std::exception& again) {
        if (is_memory(again)) give_back();
        throw;
      }
    }
  }
  void give_back() {
    sound_->release();
    decoder_->release();
    captions_->forget();
    c10::cuda::CUDACachingAllocator::emptyCache();
  }

  // -> [B, K, frames] on the CPU
  at::Tensor decode(const std::vector<MusicRequest>& batch, const MusicOptions& options,
                    const std::vector<MusicWindow>& windows, int64_t prompted) {
    const MusicDecoderSize& size = config_.decoder;
    std::vector<uint64_t> seeds;
    std::vector<at::Tensor> prompts;
    for (const MusicRequest& request : batch) {
      seeds.push_back(request.seed);
      prompts.push_back(prompted > 0 ? request.prompt.to(at::kCPU, at::kLong)
                                     : at::empty({size.codebooks, 0}, at::kLong));
    }
    at::Tensor known = at::stack(prompts);
    for (const MusicWindow& window : windows) {
      const DelayPattern pattern{.codebooks = size.codebooks,
                                 .channels = size.channels,
                                 .pad_token = size.pad_token,
                                 .columns = 1 + window.prompt_frames + window.new_tokens};
      const at::Tensor prompt = known.narrow(2, window.first_frame, window.prompt_frames);
      const at::Tensor tokens = decoder_->decode({.forced = pattern.forced(prompt),
                                                  .prompt_frames = window.prompt_frames,
                                                  .first_step = window.first_step,
                                                  .seeds = seeds,
                                                  .draw = draw_options_of(options.sampling)});
      known = at::cat({known.narrow(2, 0, window.first_frame), pattern.codes(tokens)}, 2);
    }
    return known;
  }

  MusicgenConfig config_;
  LogicalDevice& device_;
  c10::cuda::CUDAStream stream_;
  MusicObserver* observer_ = nullptr;
  bool turning_ = false;  // it hears of a turn that `finish` ends
  std::unique_ptr<CudaCaptionReader> captions_;
  std::unique_ptr<CudaMusicDecoder> decoder_;
  std::unique_ptr<CudaMusicSound> sound_;
  uint64_t batches_ = 0, clips_ = 0;
};

}  // namespace

std::unique_ptr<MusicEngine> make_cuda_music_engine(const Musicgen& model, LogicalDevice& device,
                                                    const MusicEngineOptions& options) {
  return std::make_unique<CudaMusicEngine>(model, device, options);
}

}  // namespace tandem
#else
namespace tandem {
std::unique_ptr<MusicEngine> make_cuda_music_engine(const Musicgen&, LogicalDevice&,
                                                    const MusicEngineOptions&) {
  throw Error(ErrorKind::device, "this build of tandem has no CUDA");
}
}  // namespace tandem
#endif
