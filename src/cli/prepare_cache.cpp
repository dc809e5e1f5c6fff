#include "cli/prepare_cache.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "data/feed/speech_feed.h"
#include "models/xtts/code_cache.h"
#include "observe/progress.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

class CacheView {
 public:
  explicit CacheView(std::string what) : what_(std::move(what)) {}
  void update(const CacheProgress& progress) {
    const int64_t every = std::max<int64_t>(1, progress.total / 20);
    if (!bar_) bar_ = std::make_unique<Progress>(progress.reused, progress.total, every, "clip");
    if (progress.done == shown_) return;
    shown_ = progress.done;
    bar_->update(progress.done, what_);
  }

 private:
  std::string what_;
  int64_t shown_ = -1;
  std::unique_ptr<Progress> bar_;
};

void tell(const CacheProgress& progress, const std::string& path) {
  log_info("{}: {} clips, {} of them from before{}", path, progress.total - progress.failed,
           progress.reused,
           progress.failed ? fmt::format("; {} could not be read", progress.failed) : "");
}

}  // namespace

CacheRequest cache_request(const Arguments& arguments) {
  CacheRequest request{.dvae = arguments.value("--dvae")};
  if (arguments.has("--cache")) {
    for (const std::string& part : split(arguments.value("--cache"), ',')) {
      const std::string kind = trim(part);
      if (kind != "mels" && kind != "codes") {
        throw Error(ErrorKind::usage,
                    fmt::format("--cache knows no `{}`; expected `mels`, `codes` or both", kind));
      }
      request.kinds.push_back(kind);
    }
  }
  const bool codes =
      std::find(request.kinds.begin(), request.kinds.end(), "codes") != request.kinds.end();
  if (codes && request.dvae.empty()) {
    throw Error(ErrorKind::usage, "--cache codes needs the DVAE that makes them")
        .hint("add --dvae dvae.pth, or a .safetensors");
  }
  return request;
}

std::vector<std::string> make_caches(const CacheRequest& request, const std::string& index_path,
                                     const DataConfig& settings) {
  std::vector<std::string> written;
  if (request.kinds.empty()) return written;
  const ClipIndex index = ClipIndex::open(index_path);
  at::set_num_threads(1);  // clips are worked on in parallel already
  for (const std::string& kind : request.kinds) {
    CacheView view(kind);
    const auto on_progress = [&](const CacheProgress& progress) { view.update(progress); };
    SpeechOptions options = speech_options(settings, 0);
    CacheProgress progress;
    if (kind == "mels") {
      written.push_back(mel_cache_path(index_path));
      progress = cache_mels(index, options, written.back(), request.workers, on_progress);
    } else {
      options.mel = mel_xtts_dvae();
      options.sample_rate = options.mel.sample_rate;
      const DvaeEncoder encoder = DvaeEncoder::load(request.dvae);
      written.push_back(code_cache_path(index_path));
      progress = cache_codes(index, options, encoder, written.back(), request.workers, on_progress);
    }
    tell(progress, written.back());
  }
  return written;
}

}  // namespace tandem
