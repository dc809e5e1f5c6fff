// The figures of a step, on one line.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tandem/trainer.h"

namespace tandem {

// "loss 3.1416  val 3.2  norm 0.52  lr 1.0e-03  210432 tok/s  812 audio-s/s  wait 0.1%  GPU 97%
// 13.1 GiB": what is known of them. Where that is longer than `columns`, what matters least is left
// out; the loss stays. `validation`: the last validation's loss, nullptr: none yet.
std::string step_figures(const StepReport& report, const double* validation, size_t columns = 1000);

// Characters a line of standard error has when it is a terminal, else 1000.
size_t terminal_columns();

}  // namespace tandem
