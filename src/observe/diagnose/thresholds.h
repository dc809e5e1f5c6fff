// Every limit that a verdict hangs on, in one place, each with its reason. Shares are of 1.
#pragma once

namespace tandem::limits {

// Less than a twentieth of a step is within what two measurements of the same thing differ by on a
// machine that does anything else, and nobody changes a setting for it.
inline constexpr double worth_changing = 0.05;
// A fed step this much longer than a replayed one, without waiting for data, is slowed by the feed.
// Twice `worth_changing`: two medians are compared, and both have their error.
inline constexpr double slowed_by_the_feed = 0.10;
// A stage that takes this share of a step keeps up on average: what is waited for is its jitter,
// which a longer queue hides. Closer to 1 the queue would have to be very long.
inline constexpr double keeps_up = 0.85;
// Tasks that sleep for half their time or more wait for something that is not a core: storage.
inline constexpr double mostly_blocked = 0.5;
// Threads that stand in line for a core for this share of their time are too many for the cores.
inline constexpr double standing_in_line = 0.3;
// Of the cores this process must use before its threads can be in each other's way.
inline constexpr double crowded_cores = 0.6;
// Where other programs use this much of the cores, and the launching thread stands in line for one,
// it cannot be told that a queue is too short or that the feed slows the step: the jitter is
// theirs.
inline constexpr double busy_machine = 0.8;
// The same where they use less, but this program and they together leave no core free.
inline constexpr double others_in_the_way = 0.25;
inline constexpr double cores_taken = 0.95;
// Of the cores the workers may fill; the rest launches the step.
inline constexpr double cores_for_workers = 0.9;
// Workers are asked for so that they take this share of a step: some room for jitter.
inline constexpr double room_for_workers = 0.8;
inline constexpr int most_workers = 64;  // more only stand in line, on any disk
// Four times as many readers are this many times as fast where it is the wait for each file that
// counts (more workers help); less where the disk's own rate is the limit (they do not).
inline constexpr double readers_scale = 1.5;
// A series repeats itself when it is at least so like itself a period later; noise reaches this
// once in thousands of series of fifty.
inline constexpr double likeness_of_a_period = 0.5;
inline constexpr double smallest_swing = 0.10;  // of the mean; less is no oscillation to speak of
// A graph captured in more than one of twenty steps, after the warm-up, is not a new shape now and
// then.
inline constexpr double captures_a_step = 0.05;
// Half the step spent launching small operations: even perfect kernels would not halve it.
inline constexpr double launch_share = 0.5;
// A thread that launches for this share of the step holds the device up: the rest is what the two
// measurements differ by.
inline constexpr double launching_all_the_time = 0.8;
// A GPU this busy is held up by nobody: threads that work all the time beside it spin until it has
// room for the next launch.
inline constexpr double never_idle = 0.97;
// A replayed graph costs about this share of launching its operations one by one.
inline constexpr double graph_launch_share = 0.2;
// Step time of one device against the median of the others: good cards of one kind are within a
// few per cent of each other, and stragglers below a quarter come and go.
inline constexpr double slow_device = 1.25;
// Clocks. Heat and power brakes are faults when they show in one reading of five. A card at its
// power cap is as it should be (it trades clock for work) until the clock is this far down.
inline constexpr double braked_readings = 0.2;
inline constexpr double power_capped_clock = 0.7;
// A busy card this far below its highest clock is held down, whatever reasons the driver gives:
// clocks set by hand come without any. No card sinks so low by itself under load.
inline constexpr double held_down_clock = 0.6;
// Without clocks: steps of the last third this much longer than those of the first, on a device
// that is busy and does not wait.
inline constexpr double slows_down = 1.15;
inline constexpr double busy = 0.8;     // a device that computes more or less all the time
inline constexpr int few_readings = 3;  // of utilisation: fewer may be those of the moment before
// The allocator needs some air: above this share of the limit a longer clip or a fragmented cache
// ends the run.
inline constexpr double memory_full = 0.92;
// The queue of prepared batches is what fills a device when it holds this much of it.
inline constexpr double queue_memory = 0.2;
// Of recorded queues: a queue that stood empty for a third of the time starves its reader; one that
// was ready nine tenths of it does not.
inline constexpr double queue_starves = 0.67;
inline constexpr double queue_ready = 0.9;
// A queue shorter than this cannot hide one batch that takes a few times as long as the others.
inline constexpr int short_queue = 8;
inline constexpr int usual_queue = 50;  // the default of data.buffer_size

}  // namespace tandem::limits
