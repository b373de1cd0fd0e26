// What a module may need of others, and how it reaches its body.
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
#include <string>
#include <string_view>
#include <tuple>
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

}  // namespace baton::pipeline
