// What the tests of the core share: an authority without a disk, and the requests most of them start from.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/apply.h"
#include "core/decide.h"
#include "core/digest.h"
#include "core/event_codec.h"
#include "core/lease/lease_manager.h"
#include "core/stream/work_decision.h"
#include "core/task/task_manager.h"

namespace baton::core {

inline constexpr Instant kStart{1'000'000};
inline constexpr Epoch kEpoch = 7;
inline constexpr SecretKey kKey{0x0123456789abcdef, 0xfedcba9876543210};
inline constexpr Duration kTtl = seconds(30);

constexpr Instant just_before(Instant at) { return at - milliseconds(1); }
constexpr Duration just_over(Duration limit) { return milliseconds(limit.ms + 1); }

struct Entry {
  EventType type;
  Bytes body;
  Stamp stamp;
};

// What became of a request, once it is recorded or not.
struct Answer {
  std::optional<EventType> appended;
  std::optional<Reply> reply;
  std::optional<Errc> refusal;

  template <class R>
  R as() const {
    if (reply && std::holds_alternative<R>(*reply)) return std::get<R>(*reply);
    ADD_FAILURE() << "another reply than expected" << (refusal ? ": refused, " : "")
                  << (refusal ? word(*refusal) : "");
    return {};
  }
  template <class R>
  bool is() const {
    return reply && std::holds_alternative<R>(*reply);
  }
};

// Decides, encodes, decodes and applies as a coordinator does, without a disk and with time as an argument.
class Authority {
 public:
  explicit Authority(Rules with = {}) : rules(with) { record(EpochStarted{.key = kKey}, kStart); }

  Answer ask(const Request& request, Instant now) {
    Answer answer = answer_to(request, now);
    if (const auto* work = std::get_if<ProcessWork>(&request))
      note_life(state_, *work, now, workers.instances);
    return answer;
  }
  Answer answer_to(const Request& request, Instant now) {
    while (const auto event = due_before(state_, workers, request, moment(now))) record(*event, now);
    const Decision decision = decide(state_, workers, request, moment(now));
    if (const auto* reject = std::get_if<Reject>(&decision)) return {.refusal = reject->code};
    if (const auto* reply = std::get_if<Reply>(&decision)) return {.reply = *reply};
    const auto& append = std::get<Append>(decision);
    record(append.event, now);
    return {.appended = type_of(append.event), .reply = append.reply};
  }
  TaskId submit(const SubmitTask& request, Instant now) { return ask(request, now).as<Submitted>().task; }
  Granted grant(const LeaseTask& request, Instant now) { return ask(request, now).as<Granted>(); }

  // Records all that time has brought about.
  void pass(Instant now) {
    while (const auto event = due(state_, moment(now))) record(*event, now);
  }
  void record(const Event& event, Instant now, Epoch epoch = 0) {
    Entry entry{type_of(event), {}, {}};
    encode(event, entry.body);
    const auto body_end = static_cast<std::uint32_t>(kBodyStart + entry.body.size());
    entry.stamp = {state_.last + 1, epoch != 0 ? epoch : std::max(state_.epoch, kEpoch), now, body_end};
    const auto read = decode(static_cast<std::uint16_t>(entry.type), entry.body);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    apply(state_, *read, entry.stamp);
    log_.push_back(std::move(entry));
  }

  Moment moment(Instant now) const { return {now, state_.epoch, state_.last + 1, rules}; }
  const State& state() const { return state_; }
  const std::vector<Entry>& log() const { return log_; }
  const Task& task(TaskId id) const { return state_.tasks[state_.ids.find(id.lsn)]; }
  bool has(TaskId id) const { return state_.ids.find(id.lsn) != 0; }
  const Lease& lease(TaskId id) const { return state_.leases[task(id).lease]; }
  const Queue& queue(std::string_view ns, std::string_view name) const {
    return state_.queues[find_queue(state_, ns, name)];
  }
  std::vector<EventType> entries_after(Lsn lsn) const {
    std::vector<EventType> types;
    for (const Entry& entry : log_) {
      if (entry.stamp.lsn > lsn) types.push_back(entry.type);
    }
    return types;
  }

  Rules rules;
  WorkerRegistry workers;

 private:
  static constexpr std::size_t kBodyStart = 4096;
  State state_;
  std::vector<Entry> log_;
};

// `shift` moves where the bodies lie, as a log in other segments would.
inline State replayed(const std::vector<Entry>& log, std::uint32_t shift = 0) {
  State state;
  for (const Entry& entry : log) {
    const auto event = decode(static_cast<std::uint16_t>(entry.type), entry.body);
    EXPECT_TRUE(event.has_value());
    Stamp stamp = entry.stamp;
    stamp.body_end += shift;
    apply(state, *event, stamp);
  }
  return state;
}

inline SubmitTask a_task(std::string key = "") {
  return {.ns = "n", .queue = "q", .payload = Blob("payload"), .key = std::move(key)};
}
inline LeaseTask a_worker(std::string name = "w", Duration ttl = kTtl) {
  return {.ns = "n", .queues = {"q"}, .worker = std::move(name), .ttl = ttl};
}
inline Capabilities capabilities(std::vector<std::string> names) { return *Capabilities::of(names); }

inline CompleteTask complete(const Granted& held, std::string_view result = "") {
  return {.ns = "n", .task = held.task, .lease = held.lease, .result = Blob(result)};
}
inline FailTask fail(const Granted& held, std::string_view reason = "") {
  return {.ns = "n", .task = held.task, .lease = held.lease, .reason = Blob(reason)};
}
inline ReleaseTask release(const Granted& held) {
  return {.ns = "n", .task = held.task, .lease = held.lease};
}
inline ExtendLease extend(const Granted& held, Duration ttl = kTtl) {
  return {.ns = "n", .task = held.task, .lease = held.lease, .ttl = ttl};
}
inline CancelTask cancel(TaskId task) { return {.ns = "n", .task = task}; }

// One submitted task, leased at the start.
struct Leased {
  Authority authority;
  Granted held;
};
inline Leased a_leased_task(const SubmitTask& task = a_task(), Duration ttl = kTtl) {
  Leased leased;
  leased.authority.submit(task, kStart);
  leased.held = leased.authority.grant(a_worker("w", ttl), kStart);
  return leased;
}

}  // namespace baton::core
