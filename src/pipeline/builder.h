// The typed face of modules: what a module needs arrives as arguments of its body, and what does not fit does
// not compile.
//
//   auto build = pipeline.add("build").timeout(minutes(10)).run([](Context& context) -> BuildInfo { … });
//   auto test = pipeline.add("test", build).matrix({"linux", "windows"})
//                   .run([](Context& context, const BuildInfo& info) -> Report { … });
//   pipeline.add("publish", test).pin_to_master()
//       .run([](Context& context, const MatrixResults<Report>& reports) { … });
//
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "pipeline/codec.h"
#include "pipeline/module.h"
#include "pipeline/needs.h"

namespace baton::pipeline {

template <class... N>
using ArgumentsOf = decltype(std::tuple_cat(NeedTraits<N>::arguments(std::declval<const Input&>())...));

template <class F, class Arguments>
struct Fits : std::false_type {};
template <class F, class... A>
struct Fits<F, std::tuple<A...>> : std::is_invocable<F, Context&, A...> {};

template <class F, class Arguments>
struct ReturnOf;
template <class F, class... A>
struct ReturnOf<F, std::tuple<A...>> {
  using Type = std::invoke_result_t<F, Context&, A...>;
};

template <class T>
ResultType result_type() {
  ResultType type;
  if constexpr (Encodable<T>) {
    type.schema = Codec<T>::schema();
    type.encode = [](const void* value) {
      return to_exact_json(Codec<T>::encode(*static_cast<const T*>(value)));
    };
    type.decode = [](std::string_view encoded) -> Result<std::shared_ptr<const void>> {
      auto value = from_json(encoded);
      if (!value) return std::unexpected(value.error());
      auto object = Codec<T>::decode(*value);
      if (!object) return std::unexpected(object.error());
      return std::make_shared<const T>(std::move(*object));
    };
  }
  return type;
}

enum class Where : bool { anywhere, master };
enum class Many : bool { one, matrix };

// A module being declared; it is declared once run() was called. A handle: it is copied freely.
template <Where W, Many M, class... N>
class ModuleBuilder {
 public:
  explicit ModuleBuilder(ModuleSpec& spec) : spec_(&spec) {}

  ModuleBuilder describe(std::string text) {
    return set([&](ModuleSpec& spec) { spec.description = std::move(text); });
  }
  ModuleBuilder timeout(Duration limit) {
    return set([&](ModuleSpec& spec) { spec.timeout = limit; });
  }
  ModuleBuilder queue_timeout(Duration limit) {
    return set([&](ModuleSpec& spec) { spec.queue_timeout = limit; });
  }
  ModuleBuilder stop_grace(Duration grace) {
    return set([&](ModuleSpec& spec) { spec.stop_grace = grace; });
  }
  ModuleBuilder retry(std::uint32_t times, Duration delay = milliseconds(100),
                      std::function<bool(const ModuleFailure&)> when = {}) {
    return set(
        [&](ModuleSpec& spec) { spec.retry = {.max = times, .delay = delay, .when = std::move(when)}; });
  }
  ModuleBuilder lost_retries(std::uint32_t times) {
    return set([&](ModuleSpec& spec) { spec.lost_retries = times; });
  }
  ModuleBuilder not_idempotent() {
    return set([](ModuleSpec& spec) { spec.idempotent = false; });
  }
  ModuleBuilder allow_failure() {
    return allow_failure_when([](const ModuleFailure&) { return true; });
  }
  ModuleBuilder allow_failure_when(std::function<bool(const ModuleFailure&)> when) {
    return set([&](ModuleSpec& spec) { spec.allow_failure = std::move(when); });
  }
  ModuleBuilder allow_failure_on(std::string target) {
    return set([&](ModuleSpec& spec) { spec.allow_failure_on.push_back(std::move(target)); });
  }
  ModuleBuilder always_run() {
    return set([](ModuleSpec& spec) { spec.always_run = true; });
  }
  ModuleBuilder skip_when(SkipCondition condition) {
    return set([&](ModuleSpec& spec) { spec.skip.push_back(std::move(condition)); });
  }
  // Where none of these holds it is skipped, and that is why.
  ModuleBuilder skip_unless(std::function<bool(Context&)> holds, std::string otherwise) {
    return run_if_any({std::move(holds)}, std::move(otherwise));
  }
  ModuleBuilder run_if_any(std::vector<std::function<bool(Context&)>> alternatives, std::string otherwise) {
    return skip_when([alternatives = std::move(alternatives),
                      otherwise = std::move(otherwise)](Context& context) -> std::optional<std::string> {
      for (const auto& holds : alternatives) {
        if (holds(context)) return std::nullopt;
      }
      return otherwise;
    });
  }
  ModuleBuilder needs_capability(std::string name) {
    return set([&](ModuleSpec& spec) { spec.capabilities.push_back(std::move(name)); });
  }
  ModuleBuilder prefers_capability(std::string name) {
    return set([&](ModuleSpec& spec) { spec.preferred.push_back(std::move(name)); });
  }
  ModuleBuilder exclusive() {
    return set([](ModuleSpec& spec) { spec.alone = true; });
  }
  ModuleBuilder exclusive(std::string key) {
    return set([&](ModuleSpec& spec) { spec.locks.push_back(std::move(key)); });
  }
  ModuleBuilder in_pool(std::string name, std::uint32_t weight = 1) {
    return set([&](ModuleSpec& spec) { spec.pool = std::move(name), spec.weight = weight; });
  }
  ModuleBuilder weight(std::uint32_t places) {
    return set([&](ModuleSpec& spec) { spec.weight = places; });
  }
  ModuleBuilder priority(Priority priority) {
    return set([&](ModuleSpec& spec) { spec.priority = priority; });
  }
  ModuleBuilder hint(Hint hint) {
    return set([&](ModuleSpec& spec) { spec.hint = hint; });
  }
  ModuleBuilder estimate(Duration time) {
    return set([&](ModuleSpec& spec) { spec.estimate = time; });
  }
  ModuleBuilder category(std::string name) {
    return set([&](ModuleSpec& spec) { spec.category = std::move(name); });
  }
  ModuleBuilder tag(std::string name) {
    return set([&](ModuleSpec& spec) { spec.tags.push_back(std::move(name)); });
  }
  ModuleBuilder needs_secret(std::string name) {
    return set([&](ModuleSpec& spec) { spec.secrets.push_back(std::move(name)); });
  }
  ModuleBuilder cache_inputs(std::vector<std::string> globs) {
    return set([&](ModuleSpec& spec) { spec.cache.files = std::move(globs); });
  }
  ModuleBuilder cache_environment(std::vector<std::string> names) {
    return set([&](ModuleSpec& spec) { spec.cache.environment = std::move(names); });
  }
  ModuleBuilder cache_key(std::string part) {
    return set([&](ModuleSpec& spec) { spec.cache.parts.push_back(std::move(part)); });
  }
  ModuleBuilder produces(std::string name, std::vector<std::string> paths = {}) {
    return set([&](ModuleSpec& spec) { spec.produces.push_back({std::move(name), std::move(paths)}); });
  }
  template <class H>
  ModuleBuilder consumes(const H& producer, std::string name, std::string into = {}) {
    return set([&](ModuleSpec& spec) {
      spec.consumes.push_back({.producer = producer.id, .name = std::move(name), .into = std::move(into)});
    });
  }
  ModuleBuilder hooks(Hooks hooks) {
    return set([&](ModuleSpec& spec) { spec.hooks = std::move(hooks); });
  }

  ModuleBuilder<Where::master, M, N...> pin_to_master() {
    spec_->pinned = true;
    return ModuleBuilder<Where::master, M, N...>(*spec_);
  }
  // Each target is a capability that its instance needs.
  ModuleBuilder<W, Many::matrix, N...> matrix(const std::vector<std::string>& targets) {
    std::vector<Target> all;
    for (const std::string& target : targets) all.push_back({target, {target}, {{"target", target}}});
    return matrix_of(std::move(all));
  }
  // Every combination of the values, as linux,gcc; `as_capabilities` names the axes whose value is one.
  ModuleBuilder<W, Many::matrix, N...> matrix_of_axes(const std::vector<Axis>& axes,
                                                      const std::vector<std::string>& as_capabilities = {}) {
    return matrix_of(combinations(axes, as_capabilities));
  }
  // With names of one's own.
  ModuleBuilder<W, Many::matrix, N...> matrix_of(std::vector<Target> targets) {
    spec_->targets = std::move(targets);
    return ModuleBuilder<W, Many::matrix, N...>(*spec_);
  }

  template <class F>
  auto run(F body) {
    static_assert(
        Fits<F, ArgumentsOf<N...>>::value,
        "the body takes a Context& and then one argument for each need, in their order: const T& for a "
        "handle, const T* for maybe(), const Outcome<T>& for settled(), const MatrixResults<T>& for a "
        "matrix, and nothing for after(), by_tag() and by_category()");
    static_assert(
        W == Where::master || !(NeedTraits<N>::kIsLocal || ...),
        "it needs a result that cannot leave the master: call pin_to_master(), or give the type of that "
        "result BATON_FIELDS");
    if constexpr (Fits<F, ArgumentsOf<N...>>::value) return declare(std::move(body));
  }

 private:
  template <class Change>
  ModuleBuilder set(Change change) {
    change(*spec_);
    return *this;
  }

  template <class F>
  auto declare(F body) {
    using Returned = typename ReturnOf<F, ArgumentsOf<N...>>::Type;
    using T = std::conditional_t<std::is_void_v<Returned>, None, std::remove_cvref_t<Returned>>;
    static_assert(
        W == Where::master || Encodable<T>,
        "this result cannot be sent to another machine: give its type BATON_FIELDS(Type, fields…), or "
        "keep the module where the master is with pin_to_master()");
    static_assert(M == Many::one || Encodable<T>, "results of a matrix have to be such that they can travel");
    spec_->result = result_type<T>();
    spec_->body = [body = std::move(body)](Context& context, std::span<const Input> inputs) mutable {
      return call<T, F>(body, context, inputs, std::index_sequence_for<N...>{});
    };
    if constexpr (!Encodable<T>)
      return LocalHandle<T>{spec_->id};
    else if constexpr (M == Many::matrix)
      return MatrixHandle<T>{spec_->id};
    else
      return Handle<T>{spec_->id};
  }

  template <class T, class F, std::size_t... I>
  static std::shared_ptr<const void> call(F& body, Context& context,
                                          [[maybe_unused]] std::span<const Input> inputs,
                                          std::index_sequence<I...>) {
    auto arguments = std::tuple_cat(std::tie(context), NeedTraits<N>::arguments(inputs[I])...);
    if constexpr (std::is_void_v<typename ReturnOf<F, ArgumentsOf<N...>>::Type>) {
      std::apply(body, std::move(arguments));
      return std::make_shared<const None>();
    } else {
      return std::make_shared<const T>(std::apply(body, std::move(arguments)));
    }
  }

  ModuleSpec* spec_;
};

}  // namespace baton::pipeline
