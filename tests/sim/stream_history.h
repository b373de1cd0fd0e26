// What the log says about streams, told in the simplest way, and what has to hold of it: each stream in
// order, with one holder at a time, and not behind a dead letter that parks it; nothing lost, nothing handled
// twice, every delivery counted.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/apply.h"
#include "core/event.h"
#include "core/state.h"

namespace baton::sim {

inline constexpr Duration kStaleAfter = seconds(4);  // of the simulation's instances

class StreamHistory {
 public:
  // Instances are evicted when they are silent for longer than `stale`.
  StreamHistory() = default;
  explicit StreamHistory(Duration stale) : stale_(stale) {}

  void happened(const core::WorkBatchApplied& event, const core::Stamp& at);
  void happened(const core::EpochStarted& event, const core::Stamp& at);
  void happened(const core::InstancesEvicted& event, const core::Stamp& at);
  void happened(const core::InstanceLeft& event, const core::Stamp& at);
  void happened(const core::LettersReplayed& event, const core::Stamp& at);
  void happened(const core::LettersPurged& event, const core::Stamp& at);
  // A call that may have left no entry: one that changed nothing, or was refused.
  void called(const std::string& ns, stream::InstanceId instance, Instant at);

  // S16: of whoever says that it is alive, for that evicts others. What was replayed was judged before, when
  // it was known who had called in between.
  void demand_nobody_silent(const core::Stamp& at) const;
  // Messages that nobody has ended yet.
  std::size_t waiting() const { return messages_.size(); }
  // S9, S13: the state holds these messages and no others, each with its deliveries.
  void compare(const core::State& state) const;

 private:
  struct Seen {
    std::uint64_t stream = 0;
    std::uint64_t seq = 0;
    stream::MessageId id;
    Instant due;
    core::Lsn given = 0;  // under this epoch, and not yet reported on
    std::uint32_t deliveries = 0;
    std::uint32_t failures = 0;
  };
  struct SeenStream {
    stream::Lane lane = stream::Lane::outbox;
    bool loose = false;  // it has no id, and one message
    std::uint64_t next_seq = 1;
    std::map<std::uint64_t, std::uint64_t> messages;  // by sequence
    core::Lsn holder = 0;                             // an instance
    core::Lsn epoch = 0;
    Instant lease_until;
    std::size_t out = 0;
    std::size_t parking = 0;  // dead letters behind which it stops
  };
  struct SeenLetter {
    Seen message;
    stream::Lane lane = stream::Lane::outbox;
    bool parks = false;
  };
  void reported(const core::MessageReported& report, core::Lsn instance, const core::Stamp& at);
  void stored(const core::MessageStored& message, const core::Stamp& at);
  void claimed(const core::StreamClaimed& claim, Instant until, core::Lsn instance, const core::Stamp& at);
  void count_lost(SeenStream& of);
  void bury(const Seen& message, stream::FailurePolicy policy);
  void take_letter(std::uint64_t letter, const core::Stamp& at);
  void let_go(core::Lsn instance, bool lost);
  void put(std::uint64_t stream, std::uint64_t seq, stream::MessageId id);

  std::map<std::uint64_t, SeenStream> streams_;
  std::map<std::uint64_t, Seen> messages_;
  std::map<std::uint64_t, SeenLetter> letters_;
  struct SeenInstance {
    core::Lsn number = 0;
    Instant spoke;
  };
  std::map<std::pair<std::string, stream::InstanceId>, SeenInstance> instances_;
  Duration stale_ = kStaleAfter;
  Instant began_;                                  // this run; everybody counts as just heard of then
  std::map<stream::MessageId, Instant> in_inbox_;  // since when
  std::uint64_t next_stream_ = 1;
  std::uint64_t next_message_ = 1;
  std::uint64_t next_letter_ = 1;
};

}  // namespace baton::sim
