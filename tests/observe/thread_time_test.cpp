#include "observe/diagnose/thread_time.h"

#include <gtest/gtest.h>

#include "observe/planted_subject.h"

namespace tandem::tests {

TEST(ThreadTime, CountsTheThreadsOfANameTogether) {
  BackwardThread thread;
  const SpentTime before = threads_time("pt_autograd_");
  compute_a(0.030);  // this thread has another name
  thread.compute(0.040);
  const SpentTime spent = threads_time("pt_autograd_") - before;
  EXPECT_GE(spent.on_core, 0.035);
  EXPECT_LE(spent.on_core, 0.060);
  EXPECT_GE(spent.wall, 0.070);
  EXPECT_EQ(threads_time("no such thread").on_core, 0);
}

}  // namespace tandem::tests
