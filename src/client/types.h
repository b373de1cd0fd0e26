// What a client says to a coordinator and hears from it. Ids are opaque text; payloads, results and reasons
// are any bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace baton::client {

// Where nothing is given the coordinator's own rule holds.
struct TaskOptions {
  std::uint32_t priority = 0;  // 0 to 9, larger first
  Duration delay;              // not before this long from now
  std::vector<std::string> capabilities;
  std::optional<std::uint32_t> max_failures;
  std::optional<Duration> backoff;
  std::optional<std::uint32_t> backoff_factor_percent;
  std::optional<Duration> backoff_max;
  std::optional<std::uint32_t> jitter_percent;
  std::optional<std::uint32_t> max_attempts;
  std::optional<Duration> max_hold;
  friend bool operator==(const TaskOptions&, const TaskOptions&) = default;
};
struct Submit {
  std::string queue;
  std::string payload;
  std::string key;  // the same key and content again is the same task, so it is safe to repeat
  TaskOptions options;
};
struct SubmitMany {
  std::string queue;
  std::vector<std::string> payloads;  // one for each task, 1024 at most
  std::vector<std::string> keys;      // one for each, which makes it safe to repeat, or none
  TaskOptions options;
};
struct Submitted {
  std::string task;
  bool existed = false;  // it was known under this key
  std::uint64_t lsn = 0;
};

struct Lease {
  std::string worker;
  std::vector<std::string> queues;
  std::uint32_t count = 1;  // tasks at most
  Duration ttl = seconds(30);
  Duration wait;  // if there is no task; has a connection to itself meanwhile
  std::vector<std::string> capabilities;
};
// A task under a lease, as whoever holds it names it.
struct Held {
  std::string task;
  std::string lease;
  friend bool operator==(const Held&, const Held&) = default;
};
struct Leased {
  std::string task;
  std::string lease;
  std::string fence;  // grows with every grant, as text too: for whoever is written to
  std::string queue;  // empty if the coordinator did not say
  std::string payload;
  std::uint32_t attempt = 0;
  Duration ttl;
  // When it was asked for, in milliseconds since the machine's boot (CLOCK_BOOTTIME). The lease may have
  // begun any time since, so it is sure to be held only until `ttl` after this.
  std::int64_t asked_at = 0;

  Held held() const { return {task, lease}; }
};

struct Failure {
  std::string reason;  // 4096 bytes at most
  bool final = false;  // do not try again, whatever the retry policy says
  Duration delay;      // try again after this long, instead of what the policy says
};
// What a worker's word under a lease came to.
struct Verdict {
  bool cancelled = false;  // the lease had ended; nothing was changed
  std::string outcome;     // completed, retried, failed or released
  Instant retry_at;        // retried, released
  std::uint64_t lsn = 0;
};
// Completing and leasing are two things with an outcome each.
struct Next {
  Result<Verdict> completed;
  Result<std::vector<Leased>> tasks;
};

struct TaskView {
  std::string task;
  std::string queue;
  std::string state;  // waiting, leased, completed, failed or dead
  std::string key;
  std::uint32_t priority = 0;
  std::uint32_t attempt = 0;
  std::uint32_t failures = 0;
  Instant created_at;
  Instant since;
  std::string worker;  // leased: by whom
  std::string fence;
  Instant lease_expiry;
  std::string dead_reason;
  std::string retry_of;
  std::string capabilities;

  bool has_ended() const { return state == "completed" || state == "failed" || state == "dead"; }
};
struct Task {
  TaskView view;
  std::string payload;
  std::string result;  // of a completed task
  std::string reason;  // of the last failure
};
struct TaskQuery {
  std::string queue;    // empty: all
  std::string state;    // empty: all
  std::string worker;   // leased by this one; empty: all
  Duration older_than;  // in their state for longer than this
  std::uint32_t count = 100;
  std::uint64_t cursor = 0;
};
struct TaskPage {
  std::vector<TaskView> tasks;
  std::uint64_t cursor = 0;  // of the next page; 0: this is the last
};
struct QueueView {
  std::string queue;
  bool paused = false;
  std::uint64_t waiting = 0;
  std::uint64_t delayed = 0;  // of the waiting ones
  std::uint64_t leased = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t dead = 0;
};
struct QueueQuery {
  std::uint32_t count = 1000;
  std::string cursor;
};
struct QueuePage {
  std::vector<QueueView> queues;
  std::string cursor;  // of the next page; empty: this is the last
};
struct WorkerView {
  std::string worker;
  std::uint64_t leases = 0;
  std::uint64_t capacity = 0;  // 0: any number
  std::string capabilities;
  std::optional<Duration> silent_for;  // none: it was not heard of since the coordinator's start
};
struct WorkerQuery {
  std::uint32_t count = 1000;
  std::uint64_t cursor = 0;
};
struct WorkerPage {
  std::vector<WorkerView> workers;
  std::uint64_t cursor = 0;  // of the next page; 0: this is the last
};
struct TaskCounts {
  std::uint64_t queues = 0;
  std::uint64_t waiting = 0;
  std::uint64_t leased = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t dead = 0;
};
// How the coordinator is doing. Counts are since its start, so two of these give a rate.
// Of all namespaces.
struct StreamCounts {
  std::uint64_t services = 0;
  std::uint64_t instances = 0;
  std::uint64_t streams = 0;  // that have messages
  std::uint64_t waiting = 0;  // messages
  std::uint64_t held = 0;
  std::uint64_t dead = 0;
};
struct Stats {
  std::uint64_t lsn = 0;
  std::string version;
  Duration uptime;
  std::uint64_t epoch = 0;
  Duration recovery;  // how long the start took
  std::uint64_t memory_bytes = 0;
  std::uint64_t connections_resp = 0;
  std::uint64_t connections_http = 0;
  std::uint64_t workers = 0;
  std::uint64_t leases = 0;
  std::uint64_t commands = 0;
  std::uint64_t refusals = 0;
  std::uint64_t durable_lag = 0;  // entries recorded and not yet on disk
  std::uint64_t flushes = 0;
  std::uint64_t flush_p50_us = 0;
  std::uint64_t flush_p99_us = 0;
  std::uint64_t flushed_entries = 0;
  std::uint64_t flushed_bytes = 0;
  std::uint64_t batch_entries = 0;  // in a flush, on average
  std::string disk;                 // ok, nearly_full (submissions are refused) or full
  std::uint64_t disk_free_bytes = 0;
  TaskCounts tasks;  // in all namespaces
  std::string ns;
  TaskCounts in_namespace;
  std::uint64_t payload_bytes = 0;  // in it
  StreamCounts streams;
};
// A connection broke, or was made.
struct ConnectionNews {
  std::string trouble;           // empty: there is a connection, to `address`
  bool was_turned_away = false;  // whoever is there does not let us in, or is not who he should be
  std::string address;           // of whom is tried next,
  Duration wait;                 // after this long
};
struct Heartbeat {
  std::string worker;
  std::uint32_t capacity = 0;  // tasks it wants at a time; 0: any number
  std::vector<std::string> capabilities;
};

}  // namespace baton::client
