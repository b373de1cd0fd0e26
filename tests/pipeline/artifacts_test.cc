// Artifacts and large results, from one machine to another: the same on every coordinator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <semaphore>
#include <sstream>

#include "pipeline/context.h"
#include "pipeline/folder_blobs.h"
#include "pipeline/role_guard.h"
#include "pipeline/server_coordinator.h"
#include "tests/pipeline/company.h"
#include "tests/pipeline/subjects.h"
#include "tests/served.h"
#include "tests/temporary_directory.h"

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
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

class ARunWithArtifacts : public ::testing::TestWithParam<Transport> {
 protected:
  // A worker in a folder of its own.
  void hire(Company& company, std::int32_t index, const std::string& capability) {
    WorkerOptions options = worker_options(index, {capability});
    options.site.directory = directory_.path() + "/" + capability;
    options.site.blobs = store();
    fs::create_directories(options.site.directory);
    company.hire(std::move(options));
  }
  RunReport run(Company& company) {
    RunOptions options{.is_only_master = true};
    options.site.blobs = store();
    options.site.directory = directory_.path();
    return company.run(std::move(options));
  }
  // Redis has no place of its own for them.
  BlobStore* store() { return GetParam().name == "Redis" ? &shared_ : nullptr; }

  const std::unique_ptr<contract::Subject> subject_ = GetParam().make();
  TemporaryDirectory directory_;
  FolderBlobs shared_{directory_.path() + "/blobs"};
};
INSTANTIATE_TEST_SUITE_P(On, ARunWithArtifacts, ::testing::ValuesIn(transports()),
                         [](const auto& one) { return one.param.name; });

TEST_P(ARunWithArtifacts, LetsABodyStoreAndFetchThem) {  // P15
  Pipeline pipeline("by hand");
  pipeline.on_failure(OnFailure::finish);
  auto build = pipeline.add("build")
                   .needs_capability("builder")
                   .matrix_of_axes({{"t", {"a", "b"}}})
                   .produces("bin")
                   .run([](Context& context) {
                     const std::string name = "out-" + *context.matrix_target();
                     write(context.directory() + "/" + name, "compiled");
                     context.store("bin", {name});
                   });
  pipeline.add("test", after(build))
      .needs_capability("tester")
      .consumes(build, "bin", "fetched")
      .run([](Context& context) {
        const std::string folder = context.fetch("build", "bin");
        if (contents(folder + "/a/out-a") != "compiled" || contents(folder + "/b/out-b") != "compiled")
          throw std::runtime_error("not what was built");
      });
  pipeline.add("forgets").needs_capability("builder").produces("report").run([](Context&) {});
  Company company(*subject_, pipeline);
  hire(company, 1, "builder");
  hire(company, 2, "tester");
  const RunReport report = run(company);
  EXPECT_EQ(module(report, "test").status, ModuleStatus::succeeded) << module(report, "test").failure.message;
  EXPECT_THAT(module(report, "forgets").failure.message,
              HasSubstr("artifact 'report' of forgets was not stored"));
}

TEST_P(ARunWithArtifacts, CarriesThemFromOneMachineToAnother) {  // P15
  Pipeline pipeline("artifacts");
  auto build = pipeline.add("build")
                   .needs_capability("builder")
                   .produces("bin", {"out", "*.txt"})
                   .run([](Context& context) {
                     write(context.directory() + "/out/deep/app", "compiled");
                     write(context.directory() + "/notes.txt", "read me");
                   });
  pipeline.add("test", build)
      .needs_capability("tester")
      .consumes(build, "bin", "fetched")
      .run([](Context& context) {
        if (contents(context.directory() + "/fetched/out/deep/app") != "compiled" ||
            contents(context.directory() + "/fetched/notes.txt") != "read me")
          throw std::runtime_error("not what was built");
      });
  pipeline.add("package", build).pin_to_master().consumes(build, "bin").run([](Context& context) {
    if (contents(context.directory() + "/out/deep/app") != "compiled") throw std::runtime_error("not there");
  });
  Company company(*subject_, pipeline);
  hire(company, 1, "builder");
  hire(company, 2, "tester");
  const RunReport report = run(company);
  EXPECT_EQ(report.outcome, RunOutcome::succeeded)
      << module(report, "build").failure.message << module(report, "test").failure.message
      << module(report, "package").failure.message;
  ASSERT_EQ(module(report, "build").artifacts.size(), 1U);
  EXPECT_EQ(module(report, "build").artifacts[0].name, "bin");
}

TEST_P(ARunWithArtifacts, SaysWhatIsMissing) {  // P15
  Pipeline pipeline("missing");
  pipeline.add("build").produces("bin", {"nowhere/*.o"}).run([](Context&) {});
  Company company(*subject_, pipeline);
  hire(company, 1, "any");
  const RunReport report = run(company);
  EXPECT_EQ(report.outcome, RunOutcome::failed);
  EXPECT_EQ(module(report, "build").failure.kind, FailureKind::artifact);
  EXPECT_THAT(module(report, "build").failure.message,
              AllOf(HasSubstr("artifact 'bin' of build"), HasSubstr("nowhere/*.o"), HasSubstr("/any")));
}

TEST_P(ARunWithArtifacts, CarriesLargeResults) {  // P12
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  Pipeline pipeline("large");
  auto large =
      pipeline.add("large").needs_capability("one").run([](Context&) { return std::string(kBytes, 'x'); });
  pipeline.add("there", large).needs_capability("two").run([](Context&, const std::string& text) {
    if (text != std::string(kBytes, 'x')) throw std::runtime_error("another one");
  });
  std::size_t here = 0;
  pipeline.add("here", large).pin_to_master().run([&](Context&, const std::string& text) {
    here = text.size();
  });
  auto made_here =
      pipeline.add("made-here").pin_to_master().run([](Context&) { return std::string(100'000, 'y'); });
  pipeline.add("sent", made_here).needs_capability("one").run([](Context&, const std::string& text) {
    if (text != std::string(100'000, 'y')) throw std::runtime_error("another one");
  });
  Company company(*subject_, pipeline);
  hire(company, 1, "one");
  hire(company, 2, "two");
  const RunReport report = run(company);
  EXPECT_EQ(report.outcome, RunOutcome::succeeded)
      << module(report, "large").failure.message << module(report, "there").failure.message;
  EXPECT_EQ(here, kBytes);
  ASSERT_TRUE(module(report, "large").blob);
  EXPECT_EQ(module(report, "large").blob->bytes, kBytes + 2);
}

// What was stored is changed before anybody fetches it.
class Damaging : public BlobStore {
 public:
  Result<BlobRef> put(const ByteSource& from, const std::stop_token& stop) override {
    auto blob = store_.put(from, stop);
    if (blob) ++blob->bytes;
    return blob;
  }
  Status pour(const BlobRef& blob, const ByteSink& into, const std::stop_token& stop) override {
    return store_.pour(blob, into, stop);
  }
  Result<bool> has(const BlobRef& blob, const std::stop_token& stop) override {
    return store_.has(blob, stop);
  }
  std::string place() const override { return "the cellar"; }

 private:
  TemporaryBlobs store_;
};

TEST(AnArtifact, MayBeOfATargetThatIsCalledLikeItsPlaceholder) {  // P15
  const TemporaryDirectory folder;
  FolderBlobs blobs(folder.path() + "/blobs");
  Pipeline pipeline("matrix");
  pipeline.add("build")
      .matrix_of_axes({{"os", {"x${matrix.os}"}}})
      .produces("bin", {"${matrix.os}.o"})
      .run([](Context& context) { write(context.directory() + "/x${matrix.os}.o", "compiled"); });
  RunOptions options;
  options.site.directory = folder.path();
  options.site.blobs = &blobs;
  const RunReport report = pipeline::run(*Graph::of(pipeline.definition()), std::move(options));
  EXPECT_EQ(report.outcome, RunOutcome::succeeded) << report.modules[0].failure.message;
}

TEST(ADamagedArtifact, IsAFailureThatNamesIt) {  // P15
  TemporaryDirectory directory;
  Damaging store;
  Pipeline pipeline("damaged");
  pipeline.on_failure(OnFailure::finish);
  auto build = pipeline.add("build").produces("bin", {"app"}).run([](Context& context) {
    write(context.directory() + "/app", "compiled");
  });
  pipeline.add("test", build).consumes(build, "bin", "fetched").run([](Context&) {});
  RunOptions options{.jobs = 1};
  options.site.directory = directory.path();
  options.site.blobs = &store;
  const Graph graph = *Graph::of(pipeline.definition());
  const RunReport report = pipeline::run(graph, std::move(options));
  const ModuleFailure& failed = module(report, "test").failure;
  EXPECT_EQ(failed.kind, FailureKind::artifact);
  EXPECT_THAT(failed.message, AllOf(HasSubstr("artifact 'bin' of build"), HasSubstr("the cellar"),
                                    HasSubstr("not what was stored")));
  for (const auto& left : fs::directory_iterator(directory.path() + "/fetched"))
    EXPECT_EQ(left.path().filename(), ".baton-fetched") << "something of it was left there";
}

// Somebody has stopped the run by the time it has handed out what was asked for.
class Lingering : public BlobStore {
 public:
  explicit Lingering(std::stop_source run) : run_(std::move(run)) {}
  Result<BlobRef> put(const ByteSource& from, const std::stop_token& stop) override {
    return store_.put(from, stop);
  }
  Status pour(const BlobRef& blob, const ByteSink& into, const std::stop_token& stop) override {
    std::binary_semaphore heard(0);
    const std::stop_callback on_stop(stop, [&] { heard.release(); });
    auto done = store_.pour(blob, into, {});
    run_.request_stop();
    heard.acquire();
    return done;
  }
  Result<bool> has(const BlobRef& blob, const std::stop_token& stop) override {
    return store_.has(blob, stop);
  }
  std::string place() const override { return "the cellar"; }

 private:
  TemporaryBlobs store_;
  std::stop_source run_;
};

TEST(AModule, ThatIsStoppedWhileItsArtifactsComeIsNotBegun) {  // P7 P15
  TemporaryDirectory directory;
  std::stop_source stop;
  Lingering store(stop);
  bool has_begun = false;
  Pipeline pipeline("stopped");
  auto build = pipeline.add("build").produces("bin", {"app"}).run([](Context& context) {
    write(context.directory() + "/app", "compiled");
  });
  pipeline.add("test", build).consumes(build, "bin", "fetched").run([&](Context&) { has_begun = true; });
  RunOptions options{.stop = stop.get_token()};
  options.site.directory = directory.path();
  options.site.blobs = &store;
  const Graph graph = *Graph::of(pipeline.definition());
  const RunReport report = pipeline::run(graph, std::move(options));
  EXPECT_EQ(module(report, "test").status, ModuleStatus::cancelled);
  EXPECT_FALSE(has_begun);
}

TEST(AnArtifact, DrivesNothingOutOfTheFolderWhereModulesRun) {  // P15
  const TemporaryDirectory there, here, shared;
  FolderBlobs blobs(shared.path() + "/blobs");
  Pipeline pipeline("fetched");
  auto build = pipeline.add("build").produces("bin", {"app"}).run([](Context& context) {
    write(context.directory() + "/app", "compiled");
    return 1;
  });
  pipeline.add("test", build).consumes(build, "bin", "./").run([](Context& context, int) {
    if (contents(context.directory() + "/app") != "compiled") throw std::runtime_error("not there");
  });
  const Graph graph = *Graph::of(pipeline.definition());
  RunOptions options;
  options.site.blobs = &blobs;
  options.site.directory = there.path();
  const RunReport first = pipeline::run(graph, options);
  options.restored = {{"build", {.value = {"1", {}}, .artifacts = module(first, "build").artifacts}}};
  options.site.directory = here.path();  // in which there is nothing yet
  EXPECT_EQ(pipeline::run(graph, options).outcome, RunOutcome::succeeded);
  write(here.path() + "/notes", "mine");
  EXPECT_EQ(pipeline::run(graph, options).outcome, RunOutcome::succeeded);
  EXPECT_EQ(contents(here.path() + "/notes"), "mine");
}

// It does not say what it has.
class Silent : public FolderBlobs {
 public:
  using FolderBlobs::FolderBlobs;
  Result<bool> has(const BlobRef&, const std::stop_token&) override {
    ++asked;
    return failure(Errc::unavailable, "nobody answers");
  }
  int asked = 0;
};

TEST(AnArtifactFromBefore, IsNotTakenForLostWhereNobodyAnswers) {  // P15 P17
  const TemporaryDirectory folder;
  Silent store(folder.path() + "/blobs");
  int begun = 0;
  Pipeline pipeline("again");
  auto build = pipeline.add("build")
                   .not_idempotent()
                   .produces("bin", {"app"})
                   .produces("notes", {"app"})
                   .run([&](Context& context) {
                     write(context.directory() + "/app", "compiled");
                     return ++begun;
                   });
  pipeline.add("test", build).consumes(build, "bin", "fetched").run([](Context&, int) {});
  const Graph graph = *Graph::of(pipeline.definition());
  RunOptions options;
  options.site.directory = folder.path();
  options.site.blobs = &store;
  const RunReport first = pipeline::run(graph, options);
  options.restored = {{"build", {.value = {"1", {}}, .artifacts = module(first, "build").artifacts}}};
  const RunReport report = pipeline::run(graph, options);
  EXPECT_EQ(module(report, "build").status, ModuleStatus::restored)
      << module(report, "build").failure.message;
  EXPECT_EQ(report.outcome, RunOutcome::succeeded) << module(report, "test").failure.message;
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(store.asked, 1) << "each question may take as long as a server may be away";
}

// A server, to somebody who does not know that it keeps blobs.
class Unaware : public RoleGuard {
 public:
  Unaware(std::unique_ptr<DistributedCoordinator> behind, Role role)
      : RoleGuard(*behind, role), behind_(std::move(behind)) {}
  BlobStore* blobs() override { return nullptr; }

 private:
  const std::unique_ptr<DistributedCoordinator> behind_;
};
class UnawareSubject : public contract::Subject {
 public:
  std::unique_ptr<DistributedCoordinator> connect() override {
    const Role role = std::exchange(is_first_, false) ? Role::master : Role::worker;
    return std::make_unique<Unaware>(server_->connect(), role);
  }
  Duration lease() const override { return server_->lease(); }
  void let_pass(Duration time) override { server_->let_pass(time); }

 private:
  const std::unique_ptr<contract::Subject> server_ = transports()[2].make();
  bool is_first_ = true;
};

TEST(AResult, ThatIsTooLargeForItsWaySaysSo) {  // P12
  Pipeline pipeline("large");
  pipeline.add("large").run([](Context&) { return std::string(3 << 20, 'x'); });
  UnawareSubject subject;
  Company company(subject, pipeline);
  company.hire(worker_options(1, {}));
  const ModuleReport large = module(company.run(), "large");
  EXPECT_EQ(large.failure.kind, FailureKind::encode);
  EXPECT_THAT(large.failure.message,
              AllOf(HasSubstr("its result of 3145730 bytes is too large"), HasSubstr("--blobs")));
  EXPECT_EQ(large.attempt, 1U);
}

// A server whose workers may be silent for a while: the disk is busy.
class PatientSubject : public contract::Subject {
 public:
  std::unique_ptr<DistributedCoordinator> connect() override {
    ServerCoordinatorOptions options{.run = "gigabyte", .lease = seconds(10)};
    options.client.addresses = {server_.address()};
    return std::make_unique<ServerCoordinator>(options);
  }
  Duration lease() const override { return seconds(10); }
  void let_pass(Duration) override {}

 private:
  Served server_{BATON_PROGRAM};
};

TEST(Long, AnArtifactOfAGigabyteGoesThroughAServer) {  // P15
  if (std::getenv("BATON_LONG") == nullptr) GTEST_SKIP() << "takes a minute; BATON_LONG=1 runs it";
  TemporaryDirectory directory;
  Pipeline pipeline("gigabyte");
  auto build =
      pipeline.add("build").needs_capability("one").produces("image", {"image"}).run([](Context& context) {
        context.shell("head -c 1G /dev/urandom > image && sha256sum image > sum");
      });
  pipeline.add("use", build).needs_capability("two").consumes(build, "image").run([](Context& context) {
    context.shell("sha256sum -c ../one/sum");
  });
  PatientSubject subject;
  Company company(subject, pipeline);
  for (const char* name : {"one", "two"}) {
    WorkerOptions options = worker_options(name == std::string("one") ? 1 : 2, {name});
    options.site.directory = directory.path() + "/" + name;
    fs::create_directories(options.site.directory);
    company.hire(std::move(options));
  }
  const RunReport report = company.run();
  EXPECT_EQ(report.outcome, RunOutcome::succeeded)
      << module(report, "build").failure.message << module(report, "use").failure.message;
}

}  // namespace
}  // namespace baton::pipeline
