// What instances of services ask of the coordinator about streams, and what it answers. Whoever makes a
// request has checked it (stream/checks) and made blobs of its texts, off the loop.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/blob.h"
#include "core/ids.h"
#include "core/task/task.h"
#include "stream/work_batch.h"

namespace baton::core {

template <class T>
struct ByLane {
  T outbox;
  T inbox;
  T& operator[](stream::Lane lane) { return lane == stream::Lane::outbox ? outbox : inbox; }
  const T& operator[](stream::Lane lane) const { return lane == stream::Lane::outbox ? outbox : inbox; }
};
inline constexpr std::array kLanes = {stream::Lane::outbox, stream::Lane::inbox};

// Completions and failures are two lists with the same kind of item.
template <class T>
struct ByOutcome {
  T completed;
  T failed;
};

struct StoreMessage {
  stream::MessageId id;
  std::optional<stream::StreamId> stream;
  Blob body;                     // as stream/body.h writes it
  std::uint32_t data_bytes = 0;  // what of it counts towards the limits of a claim
  bool is_event = false;
  stream::FailurePolicy policy = stream::FailurePolicy::block;
};

struct FailMessage {
  stream::Held held;
  stream::MessageStatus completed = stream::MessageStatus::none;
  Blob error;
  stream::FailureReason reason = stream::FailureReason::unknown;
  std::optional<stream::FailurePolicy> policy;
};

// One turn of an instance, or a part of it: what it leaves out does not happen. All of it is one entry.
struct ProcessWork {
  std::string ns;
  stream::InstanceId instance;
  std::optional<stream::Instance> heartbeat;  // registers it the first time
  Duration stale = stream::kStale;            // with a heartbeat: others silent for longer are evicted
  ByLane<std::vector<stream::Completion>> completions;
  ByLane<std::vector<FailMessage>> failures;
  ByOutcome<std::vector<stream::ReceptorResult>> receptors;
  ByOutcome<std::vector<stream::PerspectiveResult>> perspectives;
  ByLane<std::vector<stream::Held>> renewals;
  ByLane<std::vector<StoreMessage>> messages;
  bool keep_done = false;
  std::int32_t partitions = stream::kPartitions;
  Duration lease = stream::kLease;  // of renewals; a claim has its own
  std::optional<stream::ClaimRequest> claim;
};

// The instance goes of its own accord.
struct LeaveWork {
  std::string ns;
  stream::InstanceId instance;
};

// Dead letters of a namespace back into their old places, oldest first; or gone for good.
inline constexpr std::uint64_t kAnyLetter = UINT64_MAX;
struct ReplayLetters {
  std::string ns;
  std::vector<std::uint64_t> letters;  // none: as many as one entry takes, and whose message is not there
  std::uint64_t last = kAnyLetter;     // not those that came after this one
};
struct PurgeLetters {
  std::string ns;
  std::vector<std::uint64_t> letters;  // none: as many as one entry takes
  Duration older_than;
  std::uint64_t last = kAnyLetter;
};

// A message that was handed out; its text is in the log.
struct GivenMessage {
  stream::Lane lane = stream::Lane::outbox;
  stream::MessageId message;
  std::uint64_t number = 0;
  Lsn epoch = 0;
  std::optional<stream::StreamId> stream;
  std::int32_t partition = -1;
  std::uint64_t sequence = 0;
  BlobRef body;
  BlobRef error;
  std::int32_t status = 0;
  stream::WorkFlags flags = stream::WorkFlags::none;
  std::uint32_t deliveries = 1;
  std::uint32_t failures = 0;
  std::int32_t reason = 0;
};

using Verdicts = std::vector<stream::Verdict>;
struct WorkProcessed {
  stream::Standing standing;
  ByLane<Verdicts> completions;
  ByLane<Verdicts> failures;
  ByOutcome<Verdicts> receptors;
  ByOutcome<Verdicts> perspectives;
  ByLane<Verdicts> renewals;
  ByLane<Verdicts> messages;
  std::vector<GivenMessage> work;
};

}  // namespace baton::core
