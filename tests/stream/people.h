// Instances, streams and messages by number, and a conversation with a coordinator that expects to be
// understood.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "stream/work_coordinator.h"
#include "tests/stream/backend.h"

namespace baton::stream {

inline Uuid numbered(unsigned kind, unsigned number) {
  Uuid uuid;
  uuid.bytes[0] = std::byte(kind);
  for (unsigned i = 0; i < 4; ++i) uuid.bytes[15 - i] = std::byte(number >> (8 * i));
  return uuid;
}
inline MessageId message(unsigned number) { return {numbered(1, number)}; }
inline StreamId stream(unsigned number) { return {numbered(2, number)}; }
inline InstanceId instance(unsigned number) { return {numbered(3, number)}; }
inline Instance named(unsigned number) { return {.id = instance(number), .service = "orders"}; }

inline NewMessage in_stream(unsigned number, unsigned of_stream) {
  return {.id = message(number),
          .stream = stream(of_stream),
          .target = "there",
          .type = "Thing",
          .data = R"({"n": 1})"};
}
inline NewMessage loose(unsigned number) {
  NewMessage made = in_stream(number, 0);
  made.stream.reset();
  return made;
}

inline std::vector<MessageId> ids(const std::vector<Work>& work) {
  std::vector<MessageId> all;
  for (const Work& one : work) all.push_back(one.message);
  return all;
}
inline std::vector<MessageId> messages(std::initializer_list<unsigned> numbers) {
  std::vector<MessageId> all;
  for (const unsigned number : numbers) all.push_back(message(number));
  return all;
}
inline void PrintTo(const MessageId& id, std::ostream* out) { *out << to_text(id.value); }
inline void PrintTo(Verdict verdict, std::ostream* out) {
  *out << (verdict == Verdict::ok           ? "ok"
           : verdict == Verdict::lost_lease ? "lost_lease"
           : verdict == Verdict::unknown    ? "unknown"
                                            : "duplicate");
}

template <class T>
T granted(Result<T> result) {
  if (!result) ADD_FAILURE() << word(result.error().code) << ": " << result.error().message;
  return result ? std::move(*result) : T{};
}

// An instance with a handle of its own.
class Person {
 public:
  Person(Backend& backend, unsigned number, std::string service = "orders")
      : me{.id = instance(number), .service = std::move(service), .host = "here", .process = 1},
        coordinator(backend.connect()) {}

  WorkBatchRequest request() const { return {.instance = me}; }
  WorkBatch say(const WorkBatchRequest& request) { return granted(coordinator->process_work_batch(request)); }
  Standing arrive(Duration stale = kStale) { return granted(coordinator->heartbeat(me, stale)); }
  std::vector<Verdict> store(Lane lane, const std::vector<NewMessage>& all) {
    return granted(coordinator->store(me.id, lane, all));
  }
  std::vector<Work> claim(const ClaimRequest& request = {}) {
    return granted(coordinator->claim(me.id, request));
  }
  std::vector<Verdict> complete(const std::vector<Work>& work, MessageStatus status) {
    std::vector<Completion> all;
    for (const Work& one : work) all.push_back({.held = one.held(), .status = status});
    return work.empty() ? std::vector<Verdict>{}
                        : granted(coordinator->complete(me.id, work.front().lane, all));
  }
  std::vector<Verdict> done(const std::vector<Work>& work) {
    return complete(work, !work.empty() && work.front().lane == Lane::inbox ? MessageStatus::event_stored
                                                                            : MessageStatus::published);
  }
  Verdict fail(const Work& work, const std::string& error = "it broke",
               std::optional<FailurePolicy> policy = {}) {
    const auto verdicts = granted(coordinator->fail(me.id, work.lane,
                                                    {{.held = work.held(),
                                                      .error = error,
                                                      .reason = FailureReason::transport_exception,
                                                      .policy = policy}}));
    return verdicts.empty() ? Verdict::unknown : verdicts.front();
  }
  std::vector<Verdict> release(const std::vector<Work>& work) {
    std::vector<Held> held;
    for (const Work& one : work) held.push_back(one.held());
    return work.empty() ? std::vector<Verdict>{}
                        : granted(coordinator->release(me.id, work.front().lane, held));
  }

  Instance me;
  std::unique_ptr<WorkCoordinator> coordinator;
};

inline std::vector<Verdict> all_ok(std::size_t count) { return std::vector<Verdict>(count, Verdict::ok); }

inline std::string name_of(const testing::TestParamInfo<BackendKind>& tested) { return tested.param.name; }

// The suite for one implementation.
class Streams : public testing::TestWithParam<BackendKind> {
 protected:
  Person person(unsigned number, const std::string& service = "orders") {
    Person made(*backend_, number, service);
    made.arrive();
    return made;
  }
  void let_time_pass(Duration duration) { backend_->let_time_pass(duration); }

  const std::unique_ptr<Backend> backend_ = GetParam().make();
};
class Stream : public Streams {};  // order_test.cc instantiates it

}  // namespace baton::stream
