// The typed face of modules: what a module needs arrives as arguments of its body, and what does not fit does
// not compile.
//
//   auto build = pipeline.add("build").timeout(minutes(10)).run([](Context& context) -> BuildInfo { … });
//   auto test = pipeline.add("test", build).matrix({"linux", "windows"})
//                   .run([](Context& context, const BuildInfo& info) -> Report { … });
//   pipeline.add("publish", test).pin_to_master()
//       .run([](Context& context, const MatrixResults<Report>& reports) { … });
//
//   need                     argument
//   a handle                 const T&
//   maybe(handle)            const T*                 null: not part of the run, skipped, or failed
//   settled(handle)          const Outcome<T>&        however it ended
//   a matrix handle          const MatrixResults<T>&
//   after(handle)            none: only the order matters; likewise a handle of a module that returns nothing
//   by_tag, by_category      none
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

namespace baton::pipeline {

template <class T>
struct Handle {
  std::string id;
};
template <class T>
struct MatrixHandle {
  std::string id;
};
// Of a result that cannot travel: only modules that are pinned to the master may need it.
template <class T>
struct LocalHandle {
  std::string id;
};

template <class H>
struct Maybe {
  H of;
};
template <class H>
struct Settled {
  H of;
};
template <class H>
struct After {
  H of;
};
struct Selected {
  std::string name;
  NeedBy by;
};
template <class H>
Maybe<H> maybe(H handle) {
  return {std::move(handle)};
}
template <class H>
Settled<H> settled(H handle) {
  return {std::move(handle)};
}
template <class H>
After<H> after(H handle) {
  return {std::move(handle)};
}
inline Selected by_tag(std::string tag) { return {std::move(tag), NeedBy::tag}; }
inline Selected by_category(std::string category) { return {std::move(category), NeedBy::category}; }

template <class T>
struct Outcome {
  std::string module;
  std::string target;
  ModuleStatus status;
  const T* value;  // null: it has none
  ModuleFailure failure;
  std::string skipped_because;

  explicit Outcome(const Settlement& from)
      : module(from.module),
        target(from.target),
        status(from.status),
        value(static_cast<const T*>(from.value.get())),
        failure(from.failure),
        skipped_because(from.skipped_because) {}
};

// What the instances of a matrix came to, in the order of the targets.
template <class T>
class MatrixResults {
 public:
  explicit MatrixResults(const Input& input) {
    for (const Settlement& one : input) all_.emplace_back(one);
  }

  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  std::size_t size() const { return all_.size(); }
  const Outcome<T>* find(std::string_view target) const {
    for (const Outcome<T>& one : all_) {
      if (one.target == target) return &one;
    }
    return nullptr;
  }

 private:
  std::vector<Outcome<T>> all_;
};

// How a need reaches the body: `arguments` gives a tuple of one argument, or of none.
template <class N>
struct NeedTraits {
  static_assert(sizeof(N) == 0,
                "a module needs handles that add(...).run(...) returned, alone or in maybe(), "
                "settled() or after(), or by_tag() or by_category()");
};
template <class T>
struct NeedTraits<Handle<T>> {
  static constexpr bool kIsLocal = false;
  static Need need(const Handle<T>& handle) { return {.on = handle.id, .takes_value = true}; }
  static std::tuple<const T&> arguments(const Input& input) {
    return {*static_cast<const T*>(input.front().value.get())};
  }
};
template <>
struct NeedTraits<Handle<None>> {
  static constexpr bool kIsLocal = false;
  static Need need(const Handle<None>& handle) { return {.on = handle.id}; }
  static std::tuple<> arguments(const Input&) { return {}; }
};
template <class T>
struct NeedTraits<LocalHandle<T>> {
  static constexpr bool kIsLocal = true;
  static Need need(const LocalHandle<T>& handle) { return {.on = handle.id, .takes_value = true}; }
  static std::tuple<const T&> arguments(const Input& input) {
    return {*static_cast<const T*>(input.front().value.get())};
  }
};
template <class T>
struct NeedTraits<MatrixHandle<T>> {
  static constexpr bool kIsLocal = false;
  static Need need(const MatrixHandle<T>& handle) { return {.on = handle.id}; }
  static std::tuple<MatrixResults<T>> arguments(const Input& input) { return {MatrixResults<T>(input)}; }
};
template <template <class> class H, class T>
struct NeedTraits<Maybe<H<T>>> {
  static constexpr bool kIsLocal = NeedTraits<H<T>>::kIsLocal;
  static_assert(!std::same_as<H<T>, MatrixHandle<T>>,
                "maybe() is for plain modules; a matrix tells of each instance");
  static Need need(const Maybe<H<T>>& maybe) { return {.on = maybe.of.id, .kind = NeedKind::optional}; }
  static std::tuple<const T*> arguments(const Input& input) {
    return {input.empty() ? nullptr : static_cast<const T*>(input.front().value.get())};
  }
};
template <template <class> class H, class T>
struct NeedTraits<Settled<H<T>>> {
  static constexpr bool kIsLocal = NeedTraits<H<T>>::kIsLocal;
  static Need need(const Settled<H<T>>& settled) { return {.on = settled.of.id, .kind = NeedKind::settled}; }
  static auto arguments(const Input& input) {
    if constexpr (std::same_as<H<T>, MatrixHandle<T>>)
      return std::tuple(MatrixResults<T>(input));
    else
      return std::tuple(Outcome<T>(input.front()));
  }
};
template <class H>
struct NeedTraits<After<H>> {
  static constexpr bool kIsLocal = false;
  static Need need(const After<H>& after) { return {.on = after.of.id}; }
  static std::tuple<> arguments(const Input&) { return {}; }
};
template <>
struct NeedTraits<Selected> {
  static constexpr bool kIsLocal = false;
  static Need need(const Selected& selected) { return {.on = selected.name, .by = selected.by}; }
  static std::tuple<> arguments(const Input&) { return {}; }
};

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
  ModuleBuilder produces(std::string name, std::vector<std::string> paths) {
    return set([&](ModuleSpec& spec) { spec.produces.push_back({std::move(name), std::move(paths)}); });
  }
  template <class H>
  ModuleBuilder consumes(const H& producer, std::string name, std::string into = {}) {
    return set(
        [&](ModuleSpec& spec) { spec.consumes.push_back({producer.id, std::move(name), std::move(into)}); });
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
  // With other names than capabilities, as where there are several axes.
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
