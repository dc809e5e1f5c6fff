// Settings of one stage of a training in several: `gpt:data.batch_size=64` beside the words that
// hold for all. Of a training in one stage those of the others are passed over, so that a command
// stays the same whatever --stage it is given.
#pragma once

#include <map>
#include <string>

#include "cli/command.h"
#include "config/resolve.h"

namespace tandem {

struct StageSettings {
  Resolved whole;
  std::map<std::string, Resolved> of_stage;  // of `stage: all`, those that have words of their own
};

// Throws Error(config) for words that name a stage and set what holds for all of them.
StageSettings resolve_stage_settings(const Arguments& arguments);

}  // namespace tandem
