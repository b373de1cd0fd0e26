// Collectives of values rather than bytes. A type takes part through a WireForm: those of plain numbers and
// structs, strings and vectors of them come with baton.
//
//   auto loss = all_reduce(collective, {"loss"}, my_loss, std::plus<double>());
#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "checkpoint/collective.h"

namespace baton::checkpoint {

template <class T>
struct WireForm;

template <class T>
  requires std::is_trivially_copyable_v<T>
struct WireForm<T> {
  static Bytes encode(const T& value) {
    Bytes bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }
  static Result<T> decode(ByteView bytes) {
    if (bytes.size() != sizeof(T))
      return failure(Errc::conflict, "a rank contributed a value of another type: its size does not fit");
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
};

template <>
struct WireForm<std::string> {
  static Bytes encode(const std::string& value) {
    const ByteView bytes = bytes_of(value);
    return {bytes.begin(), bytes.end()};
  }
  static Result<std::string> decode(ByteView bytes) { return std::string(text_of(bytes)); }
};

template <class T>
  requires std::is_trivially_copyable_v<T>
struct WireForm<std::vector<T>> {
  static Bytes encode(const std::vector<T>& values) {
    Bytes bytes(values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  static Result<std::vector<T>> decode(ByteView bytes) {
    if (bytes.size() % sizeof(T) != 0)
      return failure(Errc::conflict, "a rank contributed values of another type: their size does not fit");
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

template <class T>
Result<T> broadcast(Collective& collective, const Call& call, const T& of_root, Rank root = 0) {
  auto bytes = collective.broadcast(call, WireForm<T>::encode(of_root), root);
  if (!bytes) return std::unexpected(bytes.error());
  return WireForm<T>::decode(*bytes);
}

// What each rank brought, as values.
template <class T>
Result<std::vector<T>> decoded(const Result<std::vector<Bytes>>& all) {
  if (!all) return std::unexpected(all.error());
  std::vector<T> values;
  for (const Bytes& bytes : *all) {
    auto value = WireForm<T>::decode(bytes);
    if (!value) return std::unexpected(value.error());
    values.push_back(*std::move(value));
  }
  return values;
}

template <class T>
Result<std::vector<T>> all_gather(Collective& collective, const Call& call, const T& mine) {
  return decoded<T>(collective.all_gather(call, WireForm<T>::encode(mine)));
}

// In the order of ranks, on each rank by itself.
template <class T, class TypedReducer>
Result<T> all_reduce(Collective& collective, const Call& call, const T& mine, TypedReducer reducer) {
  auto values = decoded<T>(collective.all_to_reduce(call, WireForm<T>::encode(mine)));
  if (!values) return std::unexpected(values.error());
  T folded = std::move(values->front());
  for (std::size_t from = 1; from < values->size(); ++from)
    folded = reducer(std::move(folded), (*values)[from]);
  return folded;
}

}  // namespace baton::checkpoint
