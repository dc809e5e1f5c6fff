#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>

#include "cli/command.h"
#include "cli/generate_folder.h"
#include "cli/generate_options.h"
#include "cli/generate_plan.h"
#include "cli/generate_recipe.h"
#include "cli/generate_view.h"
#include "cli/session.h"
#include "config/schema.h"
#include "device/torch_errors.h"
#include "generate/music_jobs.h"
#include "models/musicgen/music_sound.h"
#include "models/musicgen/musicgen.h"
#include "tandem/error.h"
#include "util/atomic_file.h"
#include "util/log.h"
#include "util/signals.h"

namespace tandem {
namespace fs = std::filesystem;
namespace {

bool has_audio_prompts(const Captions& captions) {
  return std::ranges::any_of(captions.rows,
                             [](const Caption& row) { return !row.audio_prompt.empty(); });
}

// Codes of sounds to go on from; one that many clips share is encoded once.
class AudioPrompts {
 public:
  explicit AudioPrompts(const Musicgen& model) : model_(model) {}

  at::Tensor codes(const std::string& path) {
    const std::lock_guard lock(mutex_);
    const auto found = last_.find(path);
    if (found != last_.end()) return found->second;
    const MusicDecoderSize& size = model_.config.decoder;
    const at::Tensor sound = read_prompt_sound(path, model_.config.codec.rate, size.channels);
    const at::Tensor made = codes_of_sound(model_.codec, size, sound.unsqueeze(0)).squeeze(0);
    last_ = {{path, made}};
    return made;
  }

 private:
  const Musicgen& model_;
  std::mutex mutex_;
  std::map<std::string, at::Tensor> last_;  // one
};

MusicJobProgress make_clips(const GenerateRequest& request, const GeneratePlan& plan,
                            const fs::path& folder, GenerateView& view) {
  const Musicgen model = Musicgen::load(request.model_folder,
                                        {.with_codec_encoder = has_audio_prompts(plan.captions)});
  AudioPrompts prompts(model);
  MusicPool pool{
      .devices = plan.devices,
      .make_engine =
          [&](LogicalDevice& device) { return make_music_engine(model, device, plan.engine); },
      .text_ids = [&](const std::string& caption) { return plan.ids.of(caption); },
      .prompt_codes = [&](const std::string& path) { return prompts.codes(path); },
      .rate = model.config.codec.rate};
  const GenerationConfig& settings = request.config.generation;
  return generate_clips(pool, plan.captions,
                        {.folder = folder.string(),
                         .music = plan.music,
                         .seed = static_cast<uint64_t>(settings.seed),
                         .batch_size = plan.plan.batch_size,
                         .split = settings.split,
                         .shard = request.shard,
                         .shards = request.shards,
                         .format = settings.format,
                         .writers = settings.writers,
                         .workers = request.config.data.num_workers,
                         .prefetch = request.config.data.prefetch_factor,
                         .recipe = model_recipe(request, plan),
                         .on_progress = [&](const auto& now) { view.update(now); },
                         .note = [](const std::string& sentence) { log_warning("{}", sentence); },
                         .stop = [] { return stop_requested() != StopRequest::none; }});
}

// Inside a handler of `error`: a run that was told to stop has an exit code of its own.
[[noreturn]] void rethrow_as_signal(const Error& error) {
  if (error.kind() == ErrorKind::interrupted && stop_requested() == StopRequest::terminated)
    throw Error(ErrorKind::terminated, error.what()).hint(error.hint());
  throw;
}

int generate_one(const GenerateRequest& request, const GeneratePlan& plan) {
  const FolderDraft draft(request.output_file + ".clip");
  GenerateView view(plan, draft.path() / "timeline.jsonl", request.config.observe.metrics_port);
  try {
    GenerateEnd end{.folder = draft.path(),
                    .progress = make_clips(request, plan, draft.path(), view)};
    view.close();
    if (end.progress.failed > 0) {
      const auto entries = clip_entries(draft.path());
      throw Error(ErrorKind::data,
                  fmt::format("`{}` could not be made: {}", request.output_file,
                              entries.empty() ? "no reason was given" : entries.front().error));
    }
    for (const auto& clip : fs::directory_iterator(draft.path() / "audio_samples"))
      fs::rename(clip.path(), request.output_file);
    if (request.json) print(end_json(request, plan, end));
    print_summary(end, view.devices());
    log_info("-> {}", request.output_file);
    return 0;
  } catch (const Error& error) {
    view.close();
    rethrow_as_signal(error);
  }
}

std::string timeline_name(const GenerateRequest& request) {
  return request.shards == 1
             ? "timeline.jsonl"
             : fmt::format("timeline.{}-of-{}.jsonl", request.shard, request.shards);
}

int generate_many(const GenerateRequest& request, const GeneratePlan& plan) {
  GenerateFolder folder({.parent = fs::path(request.config.paths.data_dir) / request.model_name,
                         .run_id = request.config.paths.run_id,
                         .folder = request.output_folder,
                         .recipe = run_recipe(request, plan),
                         .clips = static_cast<int64_t>(plan.captions.rows.size()),
                         .fresh = request.fresh},
                        request.settings_yaml);
  log_info("{} {}", folder.goes_on() ? "going on in" : "writing into", folder.path().string());
  const fs::path timeline = folder.path() / timeline_name(request);
  GenerateView view(plan, timeline, request.config.observe.metrics_port);
  GenerateEnd end{.folder = folder.path(), .state = "finished", .state_words = "finished"};
  try {
    end.progress = make_clips(request, plan, folder.path(), view);
  } catch (const Error& error) {
    view.close();
    const bool stopped = error.kind() == ErrorKind::interrupted;
    end.progress = view.last();
    end.state = stopped ? "stopped" : "failed";
    end.state_words = end.state + ": " + explain_with_torch(error).sentence;
    write_music_report(request, plan, end, timeline);
    rethrow_as_signal(error);
  }
  view.close();
  if (end.progress.failed == 0 && end.progress.merged) folder.finish();
  const std::string report = write_music_report(request, plan, end, timeline);
  if (request.json) print(end_json(request, plan, end));
  print_summary(end, view.devices());
  if (!report.empty()) log_info("report: {}", report);
  if (end.progress.failed == 0) return 0;
  log_warning("{} of {} clips could not be made; `{}` says why", end.progress.failed,
              end.progress.total, (folder.path() / "manifest.jsonl").string());
  return exit_code(ErrorKind::data);
}

int run_generate(const Arguments& arguments) {
  const Resolved resolved = resolve_generate_settings(arguments);
  if (arguments.has("--print-config")) {
    print(print_config(resolved));
    return 0;
  }
  const GenerateRequest request = generate_request(arguments, resolved);
  configure_or_stop(generate_device_request(arguments, request.config));
  for (const std::string& note : request.notes) log_info("note: {}", note);
  const GeneratePlan plan = make_generate_plan(request);
  announce(plan);
  if (request.plan) {
    print(request.json ? plan_json(request, plan) : plan_text(request, plan));
    return 0;
  }
  catch_stop_signals();
  return request.output_file.empty() ? generate_many(request, plan) : generate_one(request, plan);
}

}  // namespace

Command generate_command() {
  return {
      .name = "generate",
      .summary = "make music of captions with a MusicGen model, on all GPUs",
      .rest = "[key=value ...]",
      .details =
          "  tandem generate --model musicgen-small --prompt \"calm piano\" --seconds 10 -o a.wav\n"
          "  tandem generate --preset tta/plgrid_musiccaps paths.model_dir=/models --plan\n"
          "  tandem generate --model musicgen-large data=tta/musiccaps_captions -b 64\n"
          "  tandem generate --model musicgen-small --captions my.csv data.text_column=text "
          "-o out\n\n"
          "Clips go to DATA_DIR/MODEL/RUN_ID/audio_samples, with metadata.csv, manifest.jsonl and\n"
          "report.html. The same command again goes on where it stopped; Ctrl-C loses no clip.\n"
          "A clip sounds the same whatever the batch size, the GPUs, the shards or the resuming.",
      .settings = read_by_generate,
      .chooses_devices = true,
      .options = generate_options(),
      .run = run_generate};
}

}  // namespace tandem
