// A pipeline in C++: what modules need of each other are values with types. The same program is the master
// and each worker.
//
//   example_release         everything in this process
//   example_release plan    what would run, in which order
//
// Two processes that meet at a baton server; the first is the master:
//
//   export BATON_SERVER=127.0.0.1:7077 BATON_RUN=monday
//   example_release --instance 0 --total 2
//   example_release --instance 1 --total 2 --cap windows
#include <cstdlib>
#include <string>
#include <vector>

#include "pipeline/context.h"
#include "pipeline/pipeline.h"
#include "pipeline/server_coordinator.h"

using namespace baton;

struct BuildInfo {
  std::string version;
  std::vector<std::string> files;
};
BATON_FIELDS(BuildInfo, version, files)

int main(int argc, char** argv) {
  pipeline::Pipeline release("release");
  auto build = release.add("build").timeout(minutes(10)).run([](pipeline::Context& context) -> BuildInfo {
    context.exec({"echo", "compiling"});
    return {"1.4", {"app"}};
  });
  auto test = release.add("test", build)
                  .matrix({"linux", "windows"})
                  .run([](pipeline::Context& context, const BuildInfo& info) {
                    return info.version + " works on " + *context.matrix_target();
                  });
  release.add("publish", test)
      .pin_to_master()
      .run([](pipeline::Context& context, const pipeline::MatrixResults<std::string>& results) {
        for (const auto& one : results) context.log(one.value ? *one.value : one.skipped_because);
      });
  const char* server = std::getenv("BATON_SERVER");
  const char* run = std::getenv("BATON_RUN");
  if (server != nullptr && run != nullptr) {
    release.add_distributed_coordinator<pipeline::ServerCoordinator>(
        pipeline::ServerCoordinatorOptions{.client = {.addresses = {server}}, .run = run});
  }
  return release.main(argc, argv);
}
