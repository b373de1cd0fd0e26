#include "pipeline/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include "pipeline/memory_coordinator.h"
#include "pipeline/run.h"
#include "pipeline/testing.h"
#include "tests/temporary_directory.h"

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void write(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}
std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Difference, IsToldAsAPersonWould) {
  EXPECT_EQ(difference({{"input a", "1"}, {"its command", "1"}}, {{"input a", "2"}, {"its command", "2"}}),
            "input a changed, its command changed");
  EXPECT_EQ(difference({{"input a", "1"}}, {{"input b", "1"}}), "input b is new, input a is gone");
  EXPECT_THAT(difference({}, {{"input a", ""}, {"input b", ""}, {"input c", ""}, {"input d", ""}}),
              HasSubstr("and 1 more"));
}

TEST(Circumstances, HaveTheAxesOfATargetInThem) {
  const auto with = [](const std::string& compiler) {
    Sketch sketch;
    sketch.add("build").targets = {{.name = "win", .capabilities = {}, .axes = {{"compiler", compiler}}}};
    const Graph graph = sketch.graph();
    return *circumstances(graph[0], {}, ".");
  };
  EXPECT_EQ(with("msvc17"), with("msvc17"));
  EXPECT_EQ(difference(with("msvc17"), with("msvc19")), "axis compiler changed");
}

TEST(Circumstances, HaveInThemWhereArtifactsAreFetched) {  // P15
  const auto with = [](const std::string& folder) {
    Sketch sketch;
    sketch.add("build").produces = {{.name = "bin", .paths = {"out"}}};
    sketch.add("test", {"build"}).consumes = {{.producer = "build", .name = "bin", .into = folder}};
    const Graph graph = sketch.graph();
    return *circumstances(graph[*graph.find("test")], {}, ".");
  };
  EXPECT_EQ(with("here"), with("here"));
  EXPECT_EQ(difference(with("here"), with("there")), "where it finds what it consumes changed");
}

TEST(Circumstances, AreNotKnownWithoutTheFilesThatAreMeant) {  // P15
  const TemporaryDirectory folder;
  const auto of = [&](const std::vector<std::string>& files) {
    Pipeline pipeline("inputs");
    pipeline.add("compile").cache_inputs(files).run([](Context&) { return 1; });
    const Graph graph = *Graph::of(pipeline.definition());
    return circumstances(graph[0], {}, folder.path(), {});
  };
  EXPECT_EQ(of({"a.cc"}).error().message, "its input a.cc is not there");
  EXPECT_EQ(of({"*.cc", "src/?.h"}).error().message, "there is no file that its inputs match");
  write(folder.path() + "/a.cc", "one");
  EXPECT_TRUE(of({"a.cc", "*.h"})) << "a pattern may match nothing beside others";
}

// Of a module with one input of that name.
Result<Circumstances> circumstances_of_input(const std::string& folder, const std::string& input) {
  Pipeline pipeline("inputs");
  pipeline.add("compile").cache_inputs({input}).run([](Context&) { return 1; });
  const Graph graph = *Graph::of(pipeline.definition());
  return circumstances(graph[0], {}, folder, {});
}

TEST(Circumstances, AreNotKnownWhereAnInputIsNoPlainFile) {  // P15
  const TemporaryDirectory folder;
  write(folder.path() + "/a.cc", "one");
  ASSERT_EQ(::mkfifo((folder.path() + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(circumstances_of_input(folder.path(), "*").error().message, "its input pipe is no plain file");
  fs::create_symlink("pipe", folder.path() + "/link");
  EXPECT_EQ(circumstances_of_input(folder.path(), "link").error().message, "its input link is no plain file");
  fs::create_directory(folder.path() + "/sub");
  fs::create_symlink("sub", folder.path() + "/elsewhere");
  EXPECT_EQ(circumstances_of_input(folder.path(), "elsewhere").error().message,
            "its input elsewhere is a link to a folder, where anything may change: name what is in there");
}

TEST(Circumstances, AreOfALinkAndOfWhatIsBehindIt) {  // P15
  const TemporaryDirectory folder;
  const auto known = [&] { return *circumstances_of_input(folder.path(), "link"); };
  fs::create_symlink("a", folder.path() + "/link");
  const Circumstances to_nowhere = known();
  EXPECT_EQ(known(), to_nowhere);
  write(folder.path() + "/a", "one");
  const Circumstances to_one = known();
  EXPECT_NE(to_one, to_nowhere);
  EXPECT_EQ(known(), to_one);
  write(folder.path() + "/a", "two");
  EXPECT_NE(known(), to_one);
  write(folder.path() + "/b", "one");
  fs::remove(folder.path() + "/link");
  fs::create_symlink("b", folder.path() + "/link");
  EXPECT_NE(known(), to_one) << "it leads elsewhere, though to the same";
}

// Compiles a file, and links what came of it.
class ACachedRun : public ::testing::Test {
 protected:
  ACachedRun() { write(folder_.path() + "/src/a.cc", "one"); }

  RunReport run(const std::string& flags = "-O2") { return run(flags, cache_.blobs, {}); }
  RunReport run(const std::string& flags, BlobStore& blobs, const std::stop_token& stop) {
    Pipeline pipeline("cached");
    auto compile = pipeline.add("compile")
                       .cache_inputs({"src/*.cc"})
                       .cache_environment({"BATON_TEST_COMPILER"})
                       .cache_key(flags)
                       .produces("object", {"a.o"})
                       .run([this](Context& context) {
                         ++compiled_;
                         const std::string text = contents(context.directory() + "/src/a.cc");
                         write(context.directory() + "/a.o", "object of " + text);
                         return text.substr(0, 3);
                       });
    pipeline.add("link", compile).cache_inputs({"src/link*"}).run([this](Context&, const std::string& text) {
      ++linked_;
      return text.size();
    });
    RunOptions options{.run = "run-" + std::to_string(++runs_), .jobs = 2, .cache = &cache_};
    options.site.directory = folder_.path();
    options.site.blobs = &blobs;
    options.stop = stop;
    const Graph graph = *Graph::of(pipeline.definition());
    return pipeline::run(graph, std::move(options));
  }

  TemporaryDirectory folder_, kept_;
  Cache cache_{kept_.path() + "/cache", kept_.path() + "/blobs"};
  int runs_ = 0;
  int compiled_ = 0, linked_ = 0;
};

TEST_F(ACachedRun, DoesNotRepeatWhatHasNotChanged) {
  const RunReport first = run();
  EXPECT_EQ(first.modules[0].status, ModuleStatus::succeeded);
  EXPECT_EQ(first.modules[0].cache, "no result of it is known yet");
  fs::remove(folder_.path() + "/a.o");
  const RunReport second = run();
  EXPECT_EQ(second.outcome, RunOutcome::succeeded);
  EXPECT_EQ(second.modules[0].status, ModuleStatus::cached);
  EXPECT_EQ(second.modules[1].status, ModuleStatus::cached);
  EXPECT_EQ(second.modules[0].cache, "nothing it depends on has changed since run run-1");
  EXPECT_EQ(compiled_, 1);
  EXPECT_EQ(linked_, 1);
  EXPECT_EQ(contents(folder_.path() + "/a.o"), "object of one") << "what it produced is not back";
}

TEST_F(ACachedRun, SaysWhatHasChanged) {
  run();
  write(folder_.path() + "/src/a.cc", "one more");
  EXPECT_EQ(run().modules[0].cache, "input src/a.cc changed since run run-1");
  EXPECT_EQ(compiled_, 2);
  EXPECT_EQ(linked_, 1) << "its result is the same, so what needs it need not run";
  write(folder_.path() + "/src/b.cc", "two");
  EXPECT_EQ(run().modules[0].cache, "input src/b.cc is new since run run-2");
  EXPECT_EQ(run("-O3").modules[0].cache, "its command changed since run run-3");
  ::setenv("BATON_TEST_COMPILER", "clang", 1);
  EXPECT_EQ(run("-O3").modules[0].cache, "variable BATON_TEST_COMPILER changed since run run-4");
  ::unsetenv("BATON_TEST_COMPILER");
  write(folder_.path() + "/src/a.cc", "two");
  EXPECT_EQ(run("-O3").modules[1].cache, "the result of compile changed since run run-1");
  EXPECT_EQ(linked_, 2);
  write(folder_.path() + "/src/a.cc", "one");
  fs::remove(folder_.path() + "/src/b.cc");
  EXPECT_EQ(run().modules[0].status, ModuleStatus::cached) << "what was known before is known again";
}

// Where nothing is ever answered, until whoever asked wants to be gone.
class SlowBlobs : public FolderBlobs {
 public:
  SlowBlobs(std::string folder, std::stop_source& asked) : FolderBlobs(std::move(folder)), asked_(asked) {}
  Result<bool> has(const BlobRef&, const std::stop_token& stop) override {
    asked_.request_stop();
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait(lock, stop, [] { return false; });
    return failure(Errc::closed, "stopped");
  }

 private:
  std::stop_source& asked_;
};
TEST_F(ACachedRun, EndsWhenItIsStoppedWhateverTheCacheIsWaitingFor) {  // P7
  run();
  std::stop_source asked;
  SlowBlobs blobs(kept_.path() + "/others", asked);
  EXPECT_EQ(run("-O2", blobs, asked.get_token()).outcome, RunOutcome::cancelled);
  EXPECT_EQ(compiled_, 1);
}

// Nothing is read of it until somebody wants to be gone, which is so by then.
class StuckBlobs : public FolderBlobs {
 public:
  StuckBlobs(std::string folder, std::stop_source& asked) : FolderBlobs(std::move(folder)), asked_(asked) {}
  Status pour(const BlobRef&, const ByteSink&, const std::stop_token& stop) override {
    asked_.request_stop();
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait_for(lock, stop, std::chrono::seconds(20), [] { return false; });
    was_let_go = stop.stop_requested();
    return failure(Errc::closed, "stopped");
  }
  std::atomic<bool> was_let_go = false;

 private:
  std::stop_source& asked_;
};
TEST_F(ACachedRun, EndsWhenItIsStoppedWhileTheLastOfItIsKept) {  // P7 P15
  Pipeline pipeline("kept");
  pipeline.add("compile").cache_inputs({"src/*.cc"}).produces("object", {"src/a.cc"}).run([](Context&) {
    return 1;
  });
  std::stop_source asked;
  StuckBlobs blobs(kept_.path() + "/others", asked);
  RunOptions options{.jobs = 1, .stop = asked.get_token(), .cache = &cache_};
  options.site.directory = folder_.path();
  options.site.blobs = &blobs;
  const Graph graph = *Graph::of(pipeline.definition());
  EXPECT_EQ(pipeline::run(graph, std::move(options)).outcome, RunOutcome::succeeded);
  EXPECT_TRUE(blobs.was_let_go);
}

// Each file of theirs has other bytes.
void damage(const std::string& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) write(entry.path(), "damaged");
  }
}
TEST_F(ACachedRun, ReplacesWhatWasDamaged) {  // P15
  const std::string others = kept_.path() + "/others";
  FolderBlobs blobs(others);
  run("-O2", blobs, {});
  damage(kept_.path() + "/blobs");
  fs::remove_all(others);
  const RunReport second = run("-O2", blobs, {});
  EXPECT_EQ(second.modules[0].status, ModuleStatus::succeeded);
  EXPECT_THAT(second.modules[0].cache, HasSubstr("its result is gone"));
  fs::remove_all(others);
  EXPECT_EQ(run("-O2", blobs, {}).modules[0].status, ModuleStatus::cached);
  EXPECT_EQ(compiled_, 2);
}

TEST_F(ACachedRun, HandsOnNoValueThatWasDamaged) {  // P15
  int made = 0;
  Pipeline pipeline("large");
  auto text = pipeline.add("text").cache_inputs({"src/*.cc"}).run([&](Context&) {
    return std::to_string(++made) + std::string(100'000, 'x');
  });
  pipeline.add("uses", text).run([](Context&, const std::string&) {});
  const Graph graph = *Graph::of(pipeline.definition());
  const auto outcome = [&] {
    MemoryExchange exchange;
    MemoryCoordinator alone(exchange);
    RunOptions options{.jobs = 1, .cache = &cache_, .coordinator = &alone};
    options.site.directory = folder_.path();
    options.site.blobs = &cache_.blobs;
    return pipeline::run(graph, std::move(options)).outcome;
  };
  EXPECT_EQ(outcome(), RunOutcome::succeeded);
  damage(kept_.path() + "/blobs");
  EXPECT_EQ(outcome(), RunOutcome::succeeded);
  EXPECT_EQ(made, 2);
  EXPECT_EQ(outcome(), RunOutcome::succeeded);
  EXPECT_EQ(made, 2);
}

TEST_F(ACachedRun, RunsAgainWhatIsNoLongerStored) {
  run();
  fs::remove_all(kept_.path() + "/blobs");
  const RunReport report = run();
  EXPECT_EQ(report.modules[0].status, ModuleStatus::succeeded);
  EXPECT_THAT(report.modules[0].cache, HasSubstr("its result is gone"));
  EXPECT_EQ(compiled_, 2);
}

}  // namespace
}  // namespace baton::pipeline
