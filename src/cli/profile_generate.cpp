#include "cli/profile_generate.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/generate_plan.h"
#include "cli/session.h"
#include "models/musicgen/musicgen.h"
#include "observe/profile_generate.h"
#include "tandem/error.h"
#include "util/log.h"

namespace tandem {
namespace {

constexpr const char* made_caption =
    "a calm piano melody with soft strings and a slow steady rhythm";

}  // namespace

Arguments generate_words(const Arguments& arguments) {
  Arguments words = arguments;
  std::erase_if(words.settings, [&](const auto& setting) {
    if (setting.first != "--batch-size") return false;
    words.rest.insert(words.rest.begin(), "generation.batch_size=" + setting.second);
    return true;
  });
  if (arguments.has("--data"))
    words.rest.insert(words.rest.begin(), "data.captions_file=" + arguments.value("--data"));
  const Resolved resolved = resolve_generate_settings(words);
  if (!resolved.config.data.captions_file && !words.has("--prompt")) {
    log_warning("no captions were given: clips are made of one caption (--captions FILE)");
    words.options["--prompt"] = made_caption;
    words.several["--prompt"] = {made_caption};
  }
  return words;
}

Profile profile_generate(const Arguments& words, const ProfileOptions& options) {
  const GenerateRequest request = generate_request(words, resolve_generate_settings(words));
  configure_or_stop(generate_device_request(words, request.config));
  for (const std::string& note : request.notes) log_info("note: {}", note);
  const GeneratePlan plan = make_generate_plan(request);
  for (const std::string& note : plan.plan.notes) log_warning("{}", note);
  const std::vector<Caption>& captions = plan.captions.rows;
  const bool prompted = std::ranges::any_of(
      captions, [](const Caption& caption) { return !caption.audio_prompt.empty(); });
  if (prompted) log_warning("sounds to go on from are left out of the profile");
  const Musicgen model = Musicgen::load(request.model_folder);
  const GenerationConfig& settings = request.config.generation;
  return profile_generation(
      {.model = model,
       .devices = plan.devices,
       .shares = plan.plan.shares,
       .engine = plan.engine,
       .music = plan.music,
       .request =
           [&](int64_t clip) {
             const Caption& caption = captions[static_cast<size_t>(clip) % captions.size()];
             return MusicRequest{.text_ids = plan.ids.of(caption.text),
                                 .seed = static_cast<uint64_t>(settings.seed + clip)};
           },
       .format = {.name = settings.format, .rate = model.config.codec.rate}},
      options);
}

}  // namespace tandem
