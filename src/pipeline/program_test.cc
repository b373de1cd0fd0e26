#include "pipeline/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "pipeline/context.h"
#include "pipeline/memory_coordinator.h"

namespace baton::pipeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<ProgramOptions> options_of(const std::vector<std::string>& words,
                                  const std::map<std::string, std::string>& variables = {},
                                  const DistributedOptions& said = {}) {
  Pipeline pipeline("p");
  pipeline.add_distributed_mode(said);
  return program_options(pipeline, words, [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(AProgram, TakesItsInstanceFromFlagsThenVariablesThenItself) {  // P11
  EXPECT_EQ(options_of({}, {}, {.instance_index = 1, .total_instances = 5})->distributed.instance_index, 1);
  EXPECT_EQ(options_of({}, {{"BATON_INSTANCE", "2"}}, {.instance_index = 1, .total_instances = 5})
                ->distributed.instance_index,
            2);
  EXPECT_EQ(options_of({"--instance", "3"}, {{"BATON_INSTANCE", "2"}}, {.total_instances = 5})
                ->distributed.instance_index,
            3);
  EXPECT_THAT(options_of({"--cap", "gpu"}, {{"BATON_CAPS", "docker,linux"}})->distributed.capabilities,
              ElementsAre("docker", "linux", "gpu"));
  EXPECT_EQ(options_of({"plan"})->command, "plan");
  EXPECT_EQ(options_of({"--help"})->command, "help");
}

TEST(AProgram, SaysWhatMakesNoSense) {  // P11
  EXPECT_EQ(options_of({"--instance", "3", "--total", "3"}).error().message,
            "instance 3 is not one of 3: they count from 0");
  EXPECT_EQ(options_of({"--total", "x"}).error().message, "--total takes a number, and 'x' is none");
  EXPECT_EQ(options_of({}, {{"BATON_TOTAL", "x"}}).error().message,
            "BATON_TOTAL: --total takes a number, and 'x' is none");
  EXPECT_EQ(options_of({"--instanc", "1"}).error().message,
            "there is no option '--instanc' (did you mean '--instance'?)");
  EXPECT_EQ(options_of({"pln"}).error().message, "there is no command 'pln' (did you mean 'plan'?)");
  EXPECT_EQ(options_of({"--run"}).error().message, "--run needs a value");
}

TEST(AProgram, IsAReservedWorkerIfItIsReservedForSomething) {  // P8 P11
  const auto worker = options_of({"--reserved", "--instance", "1", "--total", "2", "--cap", "gpu"});
  ASSERT_TRUE(worker) << worker.error().message;
  EXPECT_TRUE(worker->distributed.is_reserved);
  EXPECT_EQ(options_of({"--reserved", "--cap", "gpu"}).error().message,
            "--reserved is for workers, and instance 0 is the master");
  EXPECT_THAT(options_of({"--reserved", "--instance", "1", "--total", "2", "--cap", "linux"}).error().message,
              HasSubstr("needs a capability of its own besides linux"));
}

TEST(AProgram, IsMasterAndWorkersByItsInstance) {  // P1 P11
  MemoryExchange exchange;
  std::atomic<int> ran = 0;
  Pipeline pipeline("spread");
  for (int i = 0; i < 10; ++i) pipeline.add("m" + std::to_string(i)).run([&](Context&) { ++ran; });
  pipeline.add_distributed_coordinator<MemoryCoordinator>(exchange);
  const auto instance = [&](const char* index) {
    return run_program(pipeline, *program_options(pipeline, {"--instance", index, "--total", "3"},
                                                  [](const char*) -> const char* { return nullptr; }));
  };
  int ends[3];
  {
    std::jthread one([&] { ends[1] = instance("1"); }), two([&] { ends[2] = instance("2"); });
    ends[0] = instance("0");
  }
  EXPECT_THAT(ends, ElementsAre(0, 0, 0));
  EXPECT_EQ(ran, 10);
}

class Factory : public DistributedCoordinatorFactory {
 public:
  explicit Factory(int& asked) : asked_(asked) {}
  Result<std::unique_ptr<DistributedCoordinator>> create(std::stop_token) override {
    ++asked_;
    return failure(Errc::unavailable, "nobody there");
  }

 private:
  int& asked_;
};
TEST(AFactory, WinsOverACoordinatorAndIsAskedWhenTheRunBegins) {  // P1
  MemoryExchange exchange;
  int asked = 0;
  Pipeline pipeline("spread");
  pipeline.add("m").run([](Context&) {});
  pipeline.add_distributed_mode({.total_instances = 2});
  pipeline.add_distributed_coordinator<MemoryCoordinator>(exchange);
  pipeline.add_distributed_coordinator_factory<Factory>(asked);
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(run_program(pipeline, {.distributed = *pipeline.distributed()}), 4);
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace baton::pipeline
