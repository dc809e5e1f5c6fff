#include "tandem/error.h"

#include <gtest/gtest.h>

#include <new>

#include "util/scratch.h"

namespace tandem::tests {

TEST(Error, KindsHaveTheExitCodesOfTheContract) {
  EXPECT_EQ(exit_code(ErrorKind::usage), 2);
  EXPECT_EQ(exit_code(ErrorKind::config), 1);
  EXPECT_EQ(exit_code(ErrorKind::device), 1);
  EXPECT_EQ(exit_code(ErrorKind::internal), 1);
  EXPECT_EQ(exit_code(ErrorKind::data), 3);
  EXPECT_EQ(exit_code(ErrorKind::corrupt), 3);
  EXPECT_EQ(exit_code(ErrorKind::io), 4);
  EXPECT_EQ(exit_code(ErrorKind::memory), 5);
  EXPECT_EQ(exit_code(ErrorKind::numeric), 6);
  EXPECT_EQ(exit_code(ErrorKind::peer), 7);
  EXPECT_EQ(exit_code(ErrorKind::interrupted), 130);
  EXPECT_EQ(exit_code(ErrorKind::terminated), 143);
}

TEST(Error, KindsHaveTheirNames) {
  EXPECT_STREQ(to_string(ErrorKind::usage), "usage");
  EXPECT_STREQ(to_string(ErrorKind::config), "config");
  EXPECT_STREQ(to_string(ErrorKind::device), "device");
  EXPECT_STREQ(to_string(ErrorKind::data), "data");
  EXPECT_STREQ(to_string(ErrorKind::io), "io");
  EXPECT_STREQ(to_string(ErrorKind::corrupt), "corrupt");
  EXPECT_STREQ(to_string(ErrorKind::memory), "memory");
  EXPECT_STREQ(to_string(ErrorKind::numeric), "numeric");
  EXPECT_STREQ(to_string(ErrorKind::peer), "peer");
  EXPECT_STREQ(to_string(ErrorKind::interrupted), "interrupted");
  EXPECT_STREQ(to_string(ErrorKind::terminated), "terminated");
  EXPECT_STREQ(to_string(ErrorKind::internal), "internal");
}

TEST(Error, CarriesSentenceKindHintAndWhetherItWasTold) {
  try {
    throw Error(ErrorKind::device, "no GPU 3").hint("use 0 or 1").mark_reported();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no GPU 3");
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_EQ(error.hint(), "use 0 or 1");
    EXPECT_TRUE(error.reported());
    EXPECT_TRUE(explain(error).reported);
  }
  EXPECT_FALSE(explain(Error(ErrorKind::io, "x")).reported);
}

TEST(Explain, JoinsTheSentencesOfNestedCauses) {
  const Thrown thrown = thrown_by([] {
    try {
      try {
        throw std::runtime_error("bad sector");
      } catch (...) {
        std::throw_with_nested(Error(ErrorKind::io, "cannot read `a`"));
      }
    } catch (...) {
      std::throw_with_nested(Error(ErrorKind::corrupt, "cannot resume"));
    }
  });
  EXPECT_EQ(thrown.sentence, "cannot resume: cannot read `a`: bad sector");
  EXPECT_EQ(thrown.kind, "corrupt");
}

TEST(Explain, FindsTheHintAndTheKindOfAnInnerError) {
  const Thrown thrown = thrown_by([] {
    try {
      throw Error(ErrorKind::io, "disk full").hint("free some space");
    } catch (...) {
      std::throw_with_nested(std::runtime_error("while saving"));
    }
  });
  EXPECT_EQ(thrown.sentence, "while saving: disk full");
  EXPECT_EQ(thrown.hint, "free some space");
  EXPECT_EQ(thrown.kind, "io");
}

TEST(Explain, PrefersTheOuterHint) {
  const Thrown thrown = thrown_by([] {
    try {
      throw Error(ErrorKind::io, "inner").hint("inner hint");
    } catch (...) {
      std::throw_with_nested(Error(ErrorKind::config, "outer").hint("outer hint"));
    }
  });
  EXPECT_EQ(thrown.hint, "outer hint");
  EXPECT_EQ(thrown.kind, "config");
}

TEST(Explain, RunningOutOfHostMemoryIsAMemoryError) {
  const Thrown thrown = thrown_by([] { throw std::bad_alloc(); });
  EXPECT_EQ(thrown.kind, "memory");
  EXPECT_EQ(thrown.sentence, "out of host memory");
}

TEST(Explain, AnyOtherExceptionIsInternal) {
  EXPECT_EQ(explain(std::runtime_error("odd")).kind, ErrorKind::internal);
  EXPECT_EQ(explain(std::runtime_error("odd")).sentence, "odd");
}

TEST(Explain, ACauseThatIsNoExceptionClassIsPassedOver) {
  const Thrown thrown = thrown_by([] {
    try {
      throw 7;
    } catch (...) {
      std::throw_with_nested(Error(ErrorKind::peer, "rank 1 is gone"));
    }
  });
  EXPECT_EQ(thrown.sentence, "rank 1 is gone");
  EXPECT_EQ(thrown.kind, "peer");
}

}  // namespace tandem::tests
