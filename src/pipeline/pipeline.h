// A pipeline: modules, what they need of each other, and the limits they share.
//
//   Pipeline pipeline("release");
//   auto build = pipeline.add("build").run([](Context& context) -> BuildInfo { … });
//   pipeline.add("test", build).needs_capability("docker").run([](Context&, const BuildInfo&) { … });
//   return pipeline.main(argc, argv);
//
// The same program is the master, and a worker on another machine: modules are known by their id there too.
// So a body must not rely on what it captured from one run of the program.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/builder.h"
#include "pipeline/module.h"

namespace baton::pipeline {

enum class OnFailure : std::uint8_t {
  stop,    // nothing new is begun, and what runs is asked to stop
  finish,  // only what needs the failed module is affected
};

// All that a run goes by and that does not depend on the machine.
struct Definition {
  std::string name;
  std::deque<ModuleSpec> modules;              // they do not move once they are declared
  std::map<std::string, std::uint32_t> pools;  // places in each
  OnFailure on_failure = OnFailure::stop;
  Duration timeout;  // of the whole run; 0: none
};

// How a pipeline is spread over instances of the same program: 0 is the master, the others are workers.
struct DistributedOptions {
  std::int32_t instance_index = 0;
  std::uint32_t total_instances = 1;
  std::string
      run_id;  // the same for all of them; empty: one is made, which only helps an instance that is alone
  std::vector<std::string> capabilities;  // of this machine, besides what it is
  std::uint32_t slots = 0;                // modules at a time; 0: as many as there are processors
  bool is_reserved = false;               // a worker that runs only what names one of those capabilities
};

class DistributedCoordinator;
class DistributedCoordinatorFactory;

class Pipeline {
 public:
  explicit Pipeline(std::string name) { definition_.name = std::move(name); }

  template <class... N>
  ModuleBuilder<Where::anywhere, Many::one, N...> add(std::string id, const N&... needs) {
    ModuleSpec& spec = definition_.modules.emplace_back();
    spec.id = std::move(id);
    (spec.needs.push_back(NeedTraits<N>::need(needs)), ...);
    return ModuleBuilder<Where::anywhere, Many::one, N...>(spec);
  }
  // A module as a class: `static constexpr std::string_view id`, operator()(Context&, …) and, if wanted,
  // configure(ModuleSpec&). What attributes say elsewhere are members here:
  //   static constexpr std::array required_capabilities = {"docker", "linux"};
  //   static constexpr std::array matrix_targets = {"windows", "linux"};
  //   static constexpr bool pin_to_master = true;
  template <class C, class... N>
  auto add(const N&... needs) {
    return shaped<C>(configured<C>(add(std::string(C::id), needs...))).run(C());
  }

  void pool(const std::string& name, std::uint32_t places) { definition_.pools[name] = places; }
  void on_failure(OnFailure what) { definition_.on_failure = what; }
  void timeout(Duration of_the_run) { definition_.timeout = of_the_run; }

  // Spreads the pipeline; --instance and --total of main(), and BATON_INSTANCE and BATON_TOTAL, win over what
  // is said here. Without a coordinator of one's own it is the one in memory, which is good for one process.
  void add_distributed_mode(DistributedOptions options) { distributed_ = std::move(options); }
  template <class C, class... A>
  void add_distributed_coordinator(A&&... arguments) {
    coordinator_ = std::make_shared<C>(std::forward<A>(arguments)...);
  }
  // Wins over a coordinator. It is asked once the run begins.
  template <class F, class... A>
  void add_distributed_coordinator_factory(A&&... arguments) {
    factory_ = std::make_shared<F>(std::forward<A>(arguments)...);
  }

  const Definition& definition() const { return definition_; }
  const std::optional<DistributedOptions>& distributed() const { return distributed_; }
  // Shared, so that a pipeline may be copied.
  const std::shared_ptr<DistributedCoordinator>& coordinator() const { return coordinator_; }
  const std::shared_ptr<DistributedCoordinatorFactory>& factory() const { return factory_; }

  // All that a program with this pipeline does: see program.h. Returns what to exit with.
  int main(int argc, char** argv) const;

 private:
  template <class C, class B>
  B configured(B builder) {
    ModuleSpec& spec = definition_.modules.back();
    if constexpr (requires { C::required_capabilities; }) {
      spec.capabilities.assign(C::required_capabilities.begin(), C::required_capabilities.end());
    }
    if constexpr (requires(C module) { module.configure(spec); }) C().configure(spec);
    return builder;
  }
  template <class C, class B>
  static auto shaped(B builder) {
    if constexpr (requires { C::matrix_targets; }) {
      return placed<C>(
          builder.matrix(std::vector<std::string>(C::matrix_targets.begin(), C::matrix_targets.end())));
    } else {
      return placed<C>(builder);
    }
  }
  template <class C, class B>
  static auto placed(B builder) {
    if constexpr (requires { requires C::pin_to_master; })
      return builder.pin_to_master();
    else
      return builder;
  }

  Definition definition_;
  std::optional<DistributedOptions> distributed_;
  std::shared_ptr<DistributedCoordinator> coordinator_;
  std::shared_ptr<DistributedCoordinatorFactory> factory_;
};

}  // namespace baton::pipeline
