// Everything that can grow has a limit. Those a coordinator may be configured with are in Rules; the rest
// is fixed, because formats or memory estimates rest on it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace baton::core {

inline constexpr std::size_t kNameBytesMax = 128;      // namespace, queue, worker, capability, key, actor
inline constexpr std::size_t kCapabilitiesMax = 16;    // per task and per worker
inline constexpr std::size_t kLanesPerQueueMax = 640;  // distinct (capabilities, priority) pairs in one queue
inline constexpr std::size_t kLanesKeptMax = 4096;     // with those whose tasks have all ended
inline constexpr std::size_t kQueuesPerLeaseMax = 16;  // queues one LEASE may name
inline constexpr std::size_t kExtendItemsMax = 512;    // leases one ExtendLeases may name
inline constexpr std::size_t kPurgeItemsMax = 1024;    // tasks one TasksPurged removes
inline constexpr std::size_t kReasonBytesMax = 4096;   // failure reasons and notes
inline constexpr std::size_t kPayloadBytesHardMax = 1000 * 1000;  // must fit a log record with room to spare
inline constexpr std::uint8_t kPriorityMax = 9;
inline constexpr std::uint32_t kFailuresMax = 1000;
inline constexpr std::uint32_t kAttemptsMax = 1'000'000;
inline constexpr std::uint32_t kFactorPercentMax = 10'000;
inline constexpr unsigned kEndingsKept = 8;         // past leases a task remembers
inline constexpr std::size_t kQueuesMax = 100'000;  // queues of all namespaces that hold a task or are paused
inline constexpr std::size_t kWorkersMax = 100'000;  // workers the registry remembers

inline constexpr Duration kTtlMin = milliseconds(1);
inline constexpr Duration kTtlMax = hours(24);
inline constexpr Duration kDelayMax = days(366);
inline constexpr Duration kHoldMax = days(30);
inline constexpr Duration kUnreadableDelay = hours(1);  // until a task is tried again whose payload was not

// What one namespace may hold. 0: there is only what the coordinator may hold as a whole.
struct NamespaceLimits {
  std::uint64_t tasks_max = 0;  // of any state
  std::uint64_t queues_max = 0;
  std::uint64_t payload_bytes_max = 0;  // of all tasks it holds
  friend bool operator==(const NamespaceLimits&, const NamespaceLimits&) = default;
};

inline constexpr std::size_t kLettersPerEntryMax = 1024;    // dead letters replayed or purged at once
inline constexpr std::size_t kForgottenPerEntryMax = 1024;  // of each kind that streams remember
inline constexpr std::uint32_t kStreamsLookedAt = 100'000;  // for one claim, in each lane

// Streams: how long is waited, and how much is kept.
struct StreamRules {
  std::uint32_t failures_max = 10;     // after so many a message is a dead letter; 0: never
  std::uint32_t losses_max = 10;       // likewise if it was lost so often with whoever had it
  std::uint32_t suspect_after = 3;     // such losses it is handed out alone: those behind it are not to blame
  Duration retry_unit = seconds(30);   // the wait after a failure is 2, 4, 8 and then 10 of them
  Duration offered_for = seconds(10);  // to the instance with its rank alone
  Duration seen_for = days(30);        // an inbox knows a message again, 0: for ever; events likewise
  Duration kept_for = hours(24);       // what debug mode did not delete
  Duration idle_for = hours(24);       // a stream without messages is known
  Duration tombstone_for = days(7);    // an evicted instance is refused
  std::uint64_t messages_max = 20'000'000;
  std::uint64_t remembered_max = 100'000'000;  // of each kind; beyond that the oldest go before their time
  std::uint64_t letters_max = 1'000'000;       // likewise
  std::uint64_t services_max = 10'000;
  std::uint64_t instances_max = 100'000;
  std::size_t entry_bytes_max = std::size_t{1} << 20;  // what one call may come to
};

// Policy at decision time. What was decided under one set of rules stands under every later one.
struct Rules {
  std::size_t payload_bytes_max = 256 * 1024;  // payloads and results
  std::uint64_t tasks_max = 50'000'000;        // tasks of any state the coordinator holds
  Duration retention_age = hours(1);           // finished tasks are purged when older than this
  std::uint64_t retention_count = 1'000'000;   // … or when a queue has more finished ones than this
  NamespaceLimits each_namespace;
  StreamRules streams;
  bool admit_submissions = true;  // false while the disk is nearly full
};

}  // namespace baton::core
