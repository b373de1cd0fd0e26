// Each system call of a fixed scenario fails once, or from then on: the process ends without answering, or
// goes on, and after a restart everything it had acknowledged is there.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>

#include "tests/crash/child.h"
#include "tests/crash/expectation.h"
#include "tests/temporary_directory.h"

namespace baton::crash {
namespace {

constexpr int kExitLogFailed = 74;
constexpr std::uint64_t kTriedPerKind = 12;  // the long test tries every call

struct Endings {
  unsigned cases = 0;
  unsigned survived = 0;
  unsigned stopped = 0;
  unsigned refused = 0;
};

class FailingCall : public testing::Test {
 protected:
  Ran play(const std::string& round, bool report = false) {
    ChildOptions options{.command = {BATON_CRASH_SCRIPT, data_, round}, .environment = shim_.environment()};
    if (report) options.command.emplace_back("report");
    return run(options, 20'000);
  }

  // A directory that a process left behind when it was killed, and what it had acknowledged.
  void make_used() {
    shim_.reset();
    shim_.fail = "rename:6:EIO:once";  // ends it in the middle
    left_behind_ = play("1");
    EXPECT_EQ(left_behind_.exit.code, kExitLogFailed);
    std::filesystem::copy(data_, kept_, std::filesystem::copy_options::recursive);
  }

  std::vector<std::uint64_t> calls_without_fault(bool used) {
    start_over(used);
    shim_.fail.clear();
    EXPECT_EQ(play("2").exit.code, 0);
    std::vector<std::uint64_t> counts;
    for (const auto& count : shim_.page().calls) counts.push_back(count);
    return counts;
  }

  void start_over(bool used) {
    std::filesystem::remove_all(data_);
    if (used) std::filesystem::copy(kept_, data_, std::filesystem::copy_options::recursive);
    shim_.reset();
  }

  void try_fault(const std::string& fault, bool used, bool must_survive) {
    SCOPED_TRACE(fault + (used ? " in a used directory" : " in a new directory"));
    start_over(used);
    shim_.fail = fault;
    const Ran failed = play("2");
    const bool fired = shim_.page().faults > 0;
    ++endings_.cases;
    if (failed.exit.code == 0) ++endings_.survived;
    if (failed.exit.code == kExitLogFailed) {
      ++endings_.stopped;
      EXPECT_NE(failed.errors.find("stopping without answering"), std::string::npos) << failed.errors;
    }
    if (failed.exit.code == 1) {
      ++endings_.refused;
      EXPECT_NE(failed.errors.find(": cannot "), std::string::npos) << failed.errors;
    }
    const bool well = failed.exit.code == 0 || failed.exit.code == kExitLogFailed || failed.exit.code == 1;
    EXPECT_TRUE(well) << "code " << failed.exit.code << " signal " << failed.exit.signal << "\n"
                      << failed.errors;
    if (must_survive || !fired) {
      EXPECT_EQ(failed.exit.code, 0) << failed.errors;
    }

    shim_.fail.clear();
    const Ran after = play("3", true);
    EXPECT_EQ(after.exit.code, 0) << after.errors;
    Tally tally;
    Expectation expectation(tally);
    if (used) {
      for (const std::string& line : left_behind_.lines) expectation.take(line);
    }
    for (const std::string& line : failed.lines) {
      if (line.find_first_of("TQR") != 0)
        expectation.take(line);  // its report may lack what it failed to read
    }
    for (const std::string& line : after.lines) expectation.take(line);
    for (const std::string& complaint : tally.complaints) ADD_FAILURE() << complaint;
  }

  void try_every(Call call, const char* error, const char* often, bool must_survive = false) {
    const auto number = static_cast<std::size_t>(call);
    for (const bool used : {false, true}) {
      const std::uint64_t count = (used ? counts_used_ : counts_new_)[number];
      const std::uint64_t step = every_ ? 1 : std::max<std::uint64_t>(1, count / kTriedPerKind);
      for (std::uint64_t n = 1; n <= count && !HasFailure(); n += step) {
        try_fault(fmt::format("{}:{}:{}:{}", kCallNames[number], n, error, often), used, must_survive);
      }
    }
  }

  void SetUp() override {
    make_used();
    counts_new_ = calls_without_fault(false);
    counts_used_ = calls_without_fault(true);
  }
  void TearDown() override {
    std::printf("%u cases: %u survived, %u stopped without answering, %u refused to start\n", endings_.cases,
                endings_.survived, endings_.stopped, endings_.refused);
  }

  TemporaryDirectory directory_;
  const std::string data_ = directory_.path() + "/data";
  const std::string kept_ = directory_.path() + "/kept";
  Shim shim_{directory_.path() + "/page", data_};
  bool every_ = false;  // call, and not a sample
  Ran left_behind_;
  std::vector<std::uint64_t> counts_new_;
  std::vector<std::uint64_t> counts_used_;
  Endings endings_;
};

TEST_F(FailingCall, LosesNothingWhenAnyCallFailsOnceWithAnInputOutputError) {
  for (std::size_t call = 0; call < kCalls; ++call) try_every(static_cast<Call>(call), "EIO", "once");
  EXPECT_GT(endings_.stopped, 0u);
  EXPECT_GT(endings_.refused, 0u);
}

TEST_F(FailingCall, LosesNothingWhenAllLaterCallsFail) {
  for (std::size_t call = 0; call < kCalls; ++call) try_every(static_cast<Call>(call), "EIO", "ever");
}

TEST_F(FailingCall, LosesNothingWhenThereIsNoSpace) {
  for (const Call call : {Call::open, Call::write, Call::sync, Call::rename, Call::mkdir}) {
    try_every(call, "ENOSPC", "once");
    try_every(call, "ENOSPC", "ever");
  }
}

TEST_F(FailingCall, IsRepeatedWhenASignalInterruptsIt) {
  for (const Call call : {Call::open, Call::read, Call::write}) try_every(call, "EINTR", "once", true);
}

TEST_F(FailingCall, IsContinuedWhenOnlyAPartWasDone) {
  for (const Call call : {Call::read, Call::write}) {
    try_every(call, "SHORT", "once", true);
  }
  try_fault("write:1:SHORT:ever", false, true);
  try_fault("write:1:SHORT:ever", true, true);
}

class LongFailingCall : public FailingCall {
 protected:
  void SetUp() override {
    if (std::getenv("BATON_LONG") == nullptr) GTEST_SKIP() << "set BATON_LONG=1";
    FailingCall::SetUp();
    every_ = true;
  }
};

TEST_F(LongFailingCall, LosesNothing) {
  for (std::size_t number = 0; number < kCalls; ++number) {
    const auto call = static_cast<Call>(number);
    const bool can_be_short = call == Call::read || call == Call::write;
    for (const char* often : {"once", "ever"}) {
      try_every(call, "EIO", often);
      if (call != Call::read) try_every(call, "ENOSPC", often);
    }
    if (can_be_short || call == Call::open) try_every(call, "EINTR", "once", true);
    if (can_be_short) try_every(call, "SHORT", "once", true);
  }
}

}  // namespace
}  // namespace baton::crash
