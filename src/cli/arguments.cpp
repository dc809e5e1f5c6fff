#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "config/schema.h"
#include "tandem/error.h"
#include "util/text.h"

namespace tandem {
namespace {

bool takes(const Command& command, const Setting& setting) {
  return !setting.flag.empty() && (setting.readers & command.settings) != 0;
}

std::vector<std::string> flag_names(const Command& command) {
  std::vector<std::string> names;
  for (const Option& option : all_options(command)) names.push_back(option.flag);
  for (const Setting& setting : settings()) {
    if (takes(command, setting)) names.push_back(setting.flag);
  }
  return names;
}

// A switch takes no word after it, but `--switch=false` is understood.
void add(CLI::App& app, const std::string& names, bool is_switch, std::string& into) {
  CLI::Option* option = is_switch ? app.add_flag(names, into) : app.add_option(names, into);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

// `--voice a.wav b.wav`: every word up to the next option, and again when it is repeated. The words
// come as one text, a line each, and as they are in `several`.
bool takes_several(const Option& option) { return option.repeats || option.value.ends_with("..."); }

[[noreturn]] void refuse_unknown(const Command& command, const std::string& word) {
  const std::string name = split(word, '=').front();
  throw Error(ErrorKind::usage, "`tandem " + std::string(command.name) + "` has no option `" +
                                    name + "`." + did_you_mean(name, flag_names(command)))
      .hint("tandem help " + std::string(command.name));
}

}  // namespace

Arguments parse_arguments(const Command& command, const std::vector<std::string>& words) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  const std::vector<Option> options = all_options(command);
  std::vector<std::string> values(options.size());
  std::vector<std::vector<std::string>> several(options.size());
  for (size_t i = 0; i < options.size(); ++i) {
    const std::string& extra = options[i].short_flag;
    const std::string names = extra.empty() ? options[i].flag : extra + "," + options[i].flag;
    if (takes_several(options[i])) {
      app.add_option(names, several[i])->expected(1, -1)->allow_extra_args(!options[i].repeats);
    } else {
      add(app, names, options[i].value.empty(), values[i]);
    }
  }
  std::map<std::string, std::string> setting_values;
  for (const Setting& setting : settings()) {
    if (takes(command, setting))
      add(app, setting.flag, setting.type == Type::boolean, setting_values[setting.flag]);
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 wants them reversed
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::usage, trim(error.what()))
        .hint("tandem help " + std::string(command.name));
  }
  Arguments arguments;
  arguments.command = command.name;
  for (const std::string& word : app.remaining()) {
    if (word.size() > 1 && word[0] == '-') refuse_unknown(command, word);
    if (*command.rest == '\0') {
      throw Error(ErrorKind::usage,
                  "`tandem " + std::string(command.name) + "` takes no argument `" + word + "`")
          .hint("tandem help " + std::string(command.name));
    }
    arguments.rest.push_back(word);
  }
  for (size_t i = 0; i < options.size(); ++i) {
    if (takes_several(options[i])) values[i] = join(several[i], "\n");
    const bool off = options[i].value.empty() && values[i] == "false";
    if (app.count(options[i].flag) == 0 || off) continue;
    arguments.options[options[i].flag] = values[i];
    if (takes_several(options[i])) arguments.several[options[i].flag] = several[i];
  }
  for (const auto& [flag, value] : setting_values) {
    if (app.count(flag) > 0) arguments.settings.emplace_back(flag, value);
  }
  return arguments;
}

}  // namespace tandem
