// The two halves of `measure`, and private to it.
#pragma once

#include "observe/diagnose/measure.h"

namespace tandem {

// Replays some batches of every rank while the feed rests, alone and together.
void measure_headspace(Subject& subject, const MeasureOptions& options, Figures& figures);
// The feed from its start, and the steps that eat from it. Needs the headspace's figures.
void measure_feed(Subject& subject, const MeasureOptions& options, Figures& figures);

}  // namespace tandem
