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

  const Definition& definition() const { return definition_; }

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
};

}  // namespace baton::pipeline
