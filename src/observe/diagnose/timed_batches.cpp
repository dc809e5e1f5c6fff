#include "observe/diagnose/timed_batches.h"

namespace tandem {

SpentTime TimedBatches::Totals::a_batch_since(const Totals& earlier) const {
  const int64_t done = tasks - earlier.tasks;
  if (done <= 0 || batches == 0) return {};
  const double tasks_a_batch = static_cast<double>(planned_tasks) / static_cast<double>(batches);
  return (spent - earlier.spent) * (tasks_a_batch / static_cast<double>(done));
}

TimedBatches::Totals TimedBatches::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

void TimedBatches::plan(HostBatch& host, int64_t index) {
  maker_.plan(host, index);
  const std::lock_guard lock(mutex_);
  ++totals_.batches;
  totals_.planned_tasks += host.tasks;
}

void TimedBatches::run_task(HostBatch& host, int task) {
  const SpentTime before = thread_time();
  maker_.run_task(host, task);
  const SpentTime spent = thread_time() - before;
  const std::lock_guard lock(mutex_);
  ++totals_.tasks;
  totals_.spent += spent;
}

}  // namespace tandem
