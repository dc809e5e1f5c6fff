#include <fmt/format.h>

#include "cli/command.h"
#include "config/schema.h"
#include "tandem/error.h"
#include "util/log.h"
#include "util/text.h"

namespace tandem {

std::string program_help() {
  std::string text =
      "tandem: trains XTTS-class voices and bulk-generates audio on one or many GPUs, and no GPU "
      "waits.\n\n"
      "Usage: tandem COMMAND [options] [key=value ...]\n\nCommands:\n";
  for (const Command& command : commands())
    text += fmt::format("  {:<12} {}\n", command.name, command.summary);
  text += "\n`tandem help COMMAND` explains one of them.\n";
  return text;
}

std::string command_help(const Command& command) {
  std::string text = fmt::format("{}\n\nUsage: tandem {} [options]{}{}\n", command.summary,
                                 command.name, *command.rest ? " " : "", command.rest);
  if (*command.details) text += fmt::format("\n{}\n", command.details);
  text += "\nOptions:\n";
  for (const Option& option : all_options(command)) {
    std::string left =
        option.short_flag.empty() ? option.flag : option.short_flag + ", " + option.flag;
    if (!option.value.empty()) left += " " + option.value;
    text += fmt::format("  {:<28} {}\n", left, option.help);
  }
  if (!command.settings) return text;
  text += "\nSettings with a flag (all of them: docs/settings.md):\n";
  for (const Setting& setting : settings()) {
    if (setting.flag.empty() || !(setting.readers & command.settings)) continue;
    const bool is_switch = setting.type == Type::boolean;
    const std::string left =
        setting.flag +
        (is_switch ? "" : " " + std::string(setting.type == Type::text ? "TEXT" : "N"));
    const std::string standard = format_value(setting.default_value);
    text += fmt::format("  {:<28} {} [{}]\n", left, setting.help,
                        standard == "null" ? "none" : standard);
  }
  return text;
}

std::string bash_completion() {
  std::string cases, names;
  for (const Command& command : commands()) {
    std::vector<std::string> words;
    for (const Option& option : all_options(command)) words.push_back(option.flag);
    for (const Setting& setting : settings()) {
      if (!setting.flag.empty() && (setting.readers & command.settings))
        words.push_back(setting.flag);
    }
    names += std::string(names.empty() ? "" : " ") + command.name;
    if (std::string(command.name) == "help") continue;  // completes the names of commands
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command.name, join(words, " "));
  }
  return "# bash completion for tandem:  source <(tandem completion bash)\n"
         "_tandem() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" words=\"" +
         names +
         "\"\n"
         "  if [ \"$COMP_CWORD\" -gt 1 ]; then\n"
         "    case \"${COMP_WORDS[1]}\" in\n" +
         cases + "    help) words=\"" + names +
         "\" ;;\n"
         "    *) words=\"\" ;;\n    esac\n  fi\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  if [ ${#COMPREPLY[@]} -eq 0 ]; then COMPREPLY=($(compgen -f -- \"$current\")); fi\n"
         "}\n"
         "complete -F _tandem tandem\n";
}

Command help_command() {
  return {.name = "help",
          .summary = "what the program or a command does",
          .rest = "[COMMAND]",
          .details = "",
          .settings = 0,
          .chooses_devices = false,
          .options = {},
          .run = [](const Arguments& arguments) {
            if (arguments.rest.empty()) {
              print(program_help());
              return 0;
            }
            print(command_help(command_named(arguments.rest.front())));
            return 0;
          }};
}

Command completion_command() {
  return {.name = "completion",
          .summary = "the completion script for bash",
          .rest = "bash",
          .details = "Try it with: source <(tandem completion bash)",
          .settings = 0,
          .chooses_devices = false,
          .options = {},
          .run = [](const Arguments& arguments) {
            if (arguments.rest != std::vector<std::string>{"bash"}) {
              throw Error(ErrorKind::usage, "`tandem completion` knows the shell `bash` only")
                  .hint("tandem completion bash");
            }
            print(bash_completion());
            return 0;
          }};
}

}  // namespace tandem
