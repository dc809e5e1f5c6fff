#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/session.h"
#include "cli/synthesize_options.h"
#include "generate/voice_store.h"
#include "models/xtts/xtts.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {
namespace {

int save(const Arguments& arguments) {
  const std::string out = arguments.value("--out");
  if (out.empty()) {
    throw Error(ErrorKind::usage, "where should the voice be saved?").hint("--out me.safetensors");
  }
  const VoiceChoice choice = voice_of(arguments);
  check_voice_choice(choice);
  const XttsFolder folder = XttsFolder::open(model_of(arguments));
  const Xtts model = Xtts::load(folder);
  const Voice voice = VoiceStore(model, folder.speakers_file).get(choice);
  const std::string source = choice.files.empty() ? choice.speaker : choice.files.front();
  save_voice(out, voice, std::filesystem::path(source).stem().string());
  log_info("saved {}; use it with --voice-file", out);
  return 0;
}

int list(const Arguments& arguments) {
  const XttsFolder folder = XttsFolder::open(model_of(arguments));
  std::vector<std::string> names;
  if (!folder.speakers_file.empty()) {
    for (const auto& [name, voice] : load_speakers(folder.speakers_file)) names.push_back(name);
  }
  if (arguments.has("--json")) {
    const nlohmann::ordered_json document = {{"model", folder.path.string()}, {"speakers", names}};
    print(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  if (names.empty()) {
    log_info("`{}` holds no speakers; clone one with --voice ref.wav", folder.path.string());
  }
  for (const std::string& name : names) print(name);
  return 0;
}

int run_voice(const Arguments& arguments) {
  const std::string what = arguments.rest.size() == 1 ? arguments.rest.front() : "";
  if (what == "save") return save(arguments);
  if (what == "list") return list(arguments);
  throw Error(ErrorKind::usage,
              arguments.rest.empty()
                  ? "`tandem voice` needs a word: save or list"
                  : fmt::format("`tandem voice` has no `{}`; expected save or list",
                                join(arguments.rest, " ")))
      .hint("tandem help voice");
}

}  // namespace

Command voice_command() {
  std::vector<Option> options = {{"--model", "DIR", "a folder that holds an XTTS model"}};
  for (const auto& more : {voice_options(), recording_options()}) {
    options.insert(options.end(), more.begin(), more.end());
  }
  options.push_back({"--out", "FILE", "where `save` writes (safetensors)"});
  options.push_back({"--json", "", "one JSON document"});
  return {.name = "voice",
          .summary = "save a cloned voice, list the speakers of a model",
          .rest = "save | list",
          .details =
              "  tandem voice save --model xtts_v2 --voice a.wav b.wav --out me.safetensors\n"
              "  tandem voice list --model xtts_v2",
          .settings = 0,
          .chooses_devices = false,
          .options = options,
          .run = run_voice};
}

}  // namespace tandem
